//! The changes of a child in their order, for tests of what must be on the disk before what.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::strace;

/// One call, as strace writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name, such as `rename`.
    pub call: String,
    /// Its arguments, with the paths of descriptors.
    pub arguments: String,
}

/// What the test `child` of this binary changes in a directory, in order.
///
/// # Panics
/// When the child fails.
pub fn changes(child: &str, place: &Path) -> Vec<Change> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let output = strace(child, place, &["-y", "-o", &log.path().display().to_string()]);
    assert!(output.status.success(), "{child}: {output:?}");
    let text = fs::read_to_string(log.path()).unwrap();
    let place = place.display().to_string();
    parse(&text).into_iter().filter(|it| it.arguments.contains(&place)).collect()
}

/// The paths below a directory that changes name.
pub(crate) fn changed_paths(changes: &[Change], place: &Path) -> Vec<String> {
    let prefix = place.display().to_string();
    let texts = changes.iter().flat_map(|change| change.arguments.split(['"', '<', '>']));
    let paths: BTreeSet<&str> = texts.filter(|text| text.starts_with(&prefix)).collect();
    paths.into_iter().map(str::to_owned).collect()
}

/// What ends the first line of a call during which strace wrote a line of another thread.
const UNFINISHED: &str = " <unfinished ...>";

/// The calls of a log of strace, in the order in which they ended. A line is `PID CALL(ARGUMENTS) = RESULT`, or two lines are,
/// `PID CALL(ARGUMENTS <unfinished ...>` and `PID <... CALL resumed>REST) = RESULT`.
fn parse(log: &str) -> Vec<Change> {
    let mut unfinished = BTreeMap::new();
    let mut changes = Vec::new();
    for line in log.lines() {
        let Some((pid, text)) = line.trim_start().split_once(' ') else { continue };
        let text = text.trim_start();
        if let Some(begin) = text.strip_suffix(UNFINISHED) {
            unfinished.insert(pid, begin);
        } else if let Some((_, end)) = text.strip_prefix("<... ").and_then(|it| it.split_once('>'))
        {
            let begin = unfinished.remove(pid).unwrap_or_default();
            changes.extend(change(&format!("{begin}{end}")));
        } else {
            changes.extend(change(text));
        }
    }
    changes
}

/// A call is `CALL(ARGUMENTS) = RESULT`.
fn change(text: &str) -> Option<Change> {
    let (call, rest) = text.split_once('(')?;
    let (arguments, _) = rest.rsplit_once(" = ")?;
    Some(Change { call: call.to_owned(), arguments: arguments.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_changes_are_those_below_the_directory() {
        let change =
            |arguments: &str| Change { call: String::new(), arguments: arguments.to_owned() };
        let changes = [
            change(r#""/a/x.new", "/a/x")"#),
            change(r#"3</a/deep/y>, "text", 4)"#),
            change(r#"4</b/z>)"#),
        ];
        let paths = changed_paths(&changes, Path::new("/a"));
        assert_eq!(paths, ["/a/deep/y", "/a/x", "/a/x.new"]);
    }

    fn of(call: &str, arguments: &str) -> Change {
        Change { call: call.to_owned(), arguments: arguments.to_owned() }
    }

    #[test]
    fn a_line_of_strace_is_a_call_and_its_arguments() {
        let log = r#"12    rename("/a/x.new", "/a/x") = 0
12    fsync(3</a>)        = 0
12 +++ exited with 0 +++
"#;
        let want = [of("rename", "\"/a/x.new\", \"/a/x\")"), of("fsync", "3</a>)")];
        assert_eq!(parse(log), want);
    }

    #[test]
    fn a_call_that_another_thread_interrupts_in_the_log_counts_once_when_it_ends() {
        let log = r#"12    unlink("/a/x" <unfinished ...>
13    fsync(3</a> <unfinished ...>
12    <... unlink resumed>) = 0
13    <... fsync resumed>) = 0
"#;
        assert_eq!(parse(log), [of("unlink", "\"/a/x\")"), of("fsync", "3</a>)")]);
    }
}
