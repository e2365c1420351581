//! Which log lines are written, by level and module.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterFn, filter_fn};

/// A log that begins with this verbosity or more has lines of our libraries, too.
const LIBRARY_VERBOSITY: u32 = 9;

/// The verbosity, with the numbers of the Go kubelet. Up to 3 for the operation of a node, 4 and more for debugging, 8 and more for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verbosity {
    pub(crate) verbosity: u32,
    /// Verbosities of single modules, as patterns with asterisks.
    pub(crate) modules: Vec<(String, u32)>,
}

impl Verbosity {
    /// One verbosity for all modules.
    pub(crate) fn of(verbosity: u32) -> Self {
        Self { verbosity, modules: Vec::new() }
    }

    /// The filter of lines, and what changes its verbosity.
    pub(super) fn filter(self) -> (FilterFn<impl Fn(&Metadata<'_>) -> bool>, VerbosityControl) {
        let current = Arc::new(AtomicU32::new(self.verbosity));
        let control = VerbosityControl(Arc::clone(&current));
        let is_written = move |line: &Metadata<'_>| {
            *line.level() <= self.level_of(line, current.load(Ordering::Relaxed))
        };
        (filter_fn(is_written), control)
    }

    /// Up to which level lines from there are written at that current verbosity.
    fn level_of(&self, line: &Metadata<'_>, current: u32) -> Level {
        let said = self.modules.iter().find(|(pattern, _)| matches(pattern, line.target()));
        match said {
            Some((_, verbosity)) => level(*verbosity),
            None if line.target().starts_with("oarsman") => level(current),
            None if self.verbosity.min(current) >= LIBRARY_VERBOSITY => Level::TRACE,
            // Its warnings have the whole of an answer that cannot be decoded, such as a Secret.
            None if line.target().starts_with("kube_client") => Level::ERROR,
            None => Level::WARN,
        }
    }
}

/// Changes the verbosity of a running log. Those of single modules stay, and so do those of libraries: their lines may have the bodies of requests and answers,
/// such as Secrets, and a client that may change the verbosity must not read these in the log.
#[derive(Clone, Debug)]
pub(super) struct VerbosityControl(Arc<AtomicU32>);

impl VerbosityControl {
    pub(super) fn set(&self, verbosity: u32) {
        self.0.store(verbosity, Ordering::Relaxed);
        // Each place that logs remembers whether its lines are wanted.
        tracing::callsite::rebuild_interest_cache();
    }
}

fn level(verbosity: u32) -> Level {
    match verbosity {
        0..=3 => Level::INFO,
        4..=7 => Level::DEBUG,
        _ => Level::TRACE,
    }
}

/// Whether a pattern matches a module or one of its parents.
fn matches(pattern: &str, target: &str) -> bool {
    target.split("::").any(|name| glob_matches(pattern.as_bytes(), name.as_bytes()))
}

/// With `*` for any text and `?` for any letter.
fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            glob_matches(rest, text)
                || text.split_first().is_some_and(|(_, text)| glob_matches(pattern, text))
        }
        (Some((b'?', rest)), Some((_, text))) => glob_matches(rest, text),
        (Some((letter, rest)), Some((first, text))) if letter == first => glob_matches(rest, text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_a_module_or_one_above_it() {
        let rows = [
            ("worker", "oarsman_agent::worker::sync", true),
            ("sync", "oarsman_agent::worker::sync", true),
            ("s*c", "oarsman_agent::worker::sync", true),
            ("w?rker", "oarsman_agent::worker::sync", true),
            ("*", "anything", true),
            ("work", "oarsman_agent::worker::sync", false),
            ("worker?", "oarsman_agent::worker", false),
        ];
        for (pattern, target, want) in rows {
            assert_eq!(matches(pattern, target), want, "{pattern} {target}");
        }
    }

    #[derive(Clone, Default)]
    struct SeenTargets(Arc<std::sync::Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for SeenTargets {
        fn on_event(
            &self,
            event: &tracing::Event<'_>,
            _: tracing_subscriber::layer::Context<'_, S>,
        ) {
            self.0.lock().unwrap().push(event.metadata().target().to_owned());
        }
    }

    #[test]
    fn warnings_of_libraries_are_written_except_for_those_with_answers_of_the_api_server() {
        use tracing_subscriber::Layer;
        use tracing_subscriber::layer::SubscriberExt;
        let seen = |verbosity: Verbosity| {
            let targets = SeenTargets::default();
            let layer = targets.clone().with_filter(verbosity.filter().0);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
                tracing::warn!(target: "kube_client::client", "s3cret");
                tracing::warn!(target: "hyper", "warning");
            });
            Vec::clone(&targets.0.lock().unwrap())
        };
        assert_eq!(seen(Verbosity::of(4)), ["hyper"]);
        assert_eq!(seen(Verbosity::of(9)), ["kube_client::client", "hyper"]);
        let modules = vec![("kube_client".to_owned(), 2)];
        assert_eq!(seen(Verbosity { verbosity: 0, modules }), ["kube_client::client", "hyper"]);
    }

    #[test]
    fn the_numbers_are_those_of_the_go_kubelet() {
        let rows = [(0, Level::INFO), (3, Level::INFO), (4, Level::DEBUG), (7, Level::DEBUG)];
        for (verbosity, want) in rows.into_iter().chain([(8, Level::TRACE), (10, Level::TRACE)]) {
            assert_eq!(level(verbosity), want, "{verbosity}");
        }
    }

    /// The one test that changes a running filter: places that log remember per process whether their lines are wanted.
    #[test]
    fn a_verbosity_that_is_changed_counts_for_the_next_line() {
        use tracing_subscriber::Layer;
        use tracing_subscriber::layer::SubscriberExt;
        let targets = SeenTargets::default();
        let (filter, control) = Verbosity::of(2).filter();
        let layer = targets.clone().with_filter(filter);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            for (verbosity, expected) in [(2, 0), (4, 1), (2, 1), (8, 2)] {
                control.set(verbosity);
                tracing::debug!(target: "oarsman_agent::worker", "line");
                assert_eq!(targets.0.lock().unwrap().len(), expected, "{verbosity}");
            }
            // Row S28 of docs/security.md.
            for verbosity in [9, 10, u32::MAX] {
                control.set(verbosity);
                tracing::warn!(target: "kube_client::client", "s3cret");
                tracing::trace!(target: "hyper::proto", "s3cret");
                tracing::trace!(target: "h2::codec", "s3cret");
                tracing::trace!(target: "oarsman_agent::worker", "line");
            }
            assert_eq!(targets.0.lock().unwrap()[2..], ["oarsman_agent::worker"; 3]);
        });
    }
}
