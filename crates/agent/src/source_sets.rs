//! The latest set of each source, kept apart from the supervisor: one that is built again after a panic continues with these sets.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll, select_all, unfold};
use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::PodSets;
use oarsman_core::sources::Source;
use oarsman_sync::{TaskName, Tasks, ordered_watch};

use crate::sources::PodSource;

/// A source's full set of pods; none before its first one.
type LatestPods = Option<Vec<Arc<Pod>>>;

/// Sources and the latest set of each.
pub(crate) struct SourceSets(Vec<(Source, Arc<ordered_watch::Sender<LatestPods>>)>);

impl SourceSets {
    /// Follows every source in a task of its own.
    pub(crate) fn follow(sources: Vec<PodSource>, tasks: &mut Tasks) -> Self {
        let mut followed = Vec::new();
        for PodSource { source, open } in sources {
            let ordered_watch = Arc::new(ordered_watch::Sender::new(None));
            let into = Arc::clone(&ordered_watch);
            // A stream that panicked cannot be polled again: each start opens its own.
            tasks.spawn(task_name(source), move || follow(open(), Arc::clone(&into)));
            followed.push((source, ordered_watch));
        }
        Self(followed)
    }

    /// The sources, in order.
    pub(crate) fn names(&self) -> Vec<Source> {
        self.0.iter().map(|(source, _)| *source).collect()
    }

    /// The set of each source, now and whenever it changes.
    pub(crate) fn subscribe(&self) -> SelectAll<BoxStream<'static, (Source, Vec<Arc<Pod>>)>> {
        select_all(self.0.iter().map(|(source, ordered_watch)| {
            let source = *source;
            let sets = unfold(
                (ordered_watch.subscribe(), true),
                |(mut ordered_watch, is_first)| async move {
                    let set = match is_first {
                        true => ordered_watch.wait_for(Option::is_some).await,
                        false => ordered_watch.changed().await,
                    };
                    Some((set.ok()??, (ordered_watch, false)))
                },
            );
            sets.map(move |pods| (source, pods)).boxed()
        }))
    }
}

fn task_name(source: Source) -> TaskName {
    match source {
        Source::File => TaskName::FileSource,
        Source::Http => TaskName::UrlSource,
        Source::Api => TaskName::ApiSource,
    }
}

async fn follow(mut sets: PodSets, into: Arc<ordered_watch::Sender<LatestPods>>) {
    while let Some(pods) = sets.next().await {
        into.send_replace(Some(pods));
    }
}
