//! Messages for a pod worker that it has not read yet. The number is bounded: a newer message replaces the older one or is merged
//! into it, so that a sender never waits for a worker.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::lifecycle::{Event, Hint, KillRequest};
use oarsman_core::view::from_cri::ListedStates;
use oarsman_sync::Guarded;

/// The mailbox of one worker; clones share the messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mailbox {
    pending: Arc<Guarded<PendingMessages>>,
}

#[derive(Debug, Default)]
struct PendingMessages {
    source: Option<SourceUpdate>,
    kill: Option<KillRequest>,
    hint: Option<Hint>,
    /// What the last relist found; news only to a worker that has read something else.
    relisted: Option<ListedStates>,
}

#[derive(Debug)]
enum SourceUpdate {
    Wanted(Arc<Pod>),
    Removed,
}

impl Mailbox {
    /// The source has this version of the pod. A pod that returns after its removal gets a new worker: see the supervisor.
    pub(crate) fn update_pod(&self, pod: Arc<Pod>) {
        self.post(|pending| {
            if !matches!(pending.source, Some(SourceUpdate::Removed)) {
                pending.source = Some(SourceUpdate::Wanted(pod));
            }
        });
    }

    /// The source has no such pod.
    pub(crate) fn remove_pod(&self) {
        self.post(|pending| pending.source = Some(SourceUpdate::Removed));
    }

    /// Requests a kill. Of several requests the shortest grace and the first verdict count.
    pub(crate) fn kill(&self, request: KillRequest) {
        self.post(|pending| {
            pending.kill = Some(match pending.kill.take() {
                None => request,
                Some(first) => first.and(request),
            });
        });
    }

    /// The worker should read the pod's state again.
    pub(crate) fn hint(&self, hint: Hint) {
        self.post(|pending| pending.hint = pending.hint.max(Some(hint)));
    }

    /// A relist found the pod's sandboxes and containers in these states.
    pub(crate) fn relisted(&self, states: ListedStates) {
        self.post(|pending| pending.relisted = Some(states));
    }

    /// The next message: updates of the source first, hints last. Of a relist that found what `is_known` there is none.
    pub(crate) async fn next(&self, is_known: impl Fn(&ListedStates) -> bool) -> Event {
        self.pending.take_when(|pending| pending.take(&is_known)).await
    }

    fn post(&self, write: impl FnOnce(&mut PendingMessages)) {
        self.pending.update(write);
    }
}

impl PendingMessages {
    fn take(&mut self, is_known: impl Fn(&ListedStates) -> bool) -> Option<Event> {
        let source = self.source.take().map(|update| match update {
            SourceUpdate::Wanted(pod) => Event::Wanted(pod),
            SourceUpdate::Removed => Event::Removed,
        });
        let kill = |pending: &mut Self| pending.kill.take().map(Event::Kill);
        let hint = |pending: &mut Self| {
            let relisted = pending.relisted.take().filter(|states| !is_known(states));
            pending.hint.take().or(relisted.map(|_| Hint::Relist)).map(Event::Hint)
        };
        source.or_else(|| kill(self)).or_else(|| hint(self))
    }
}

#[cfg(test)]
mod tests {
    use oarsman_core::lifecycle::KillRequester;

    use super::*;

    fn pod(name: &str) -> Arc<Pod> {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.to_owned());
        Arc::new(pod)
    }

    fn read(mailbox: &Mailbox) -> Vec<Event> {
        std::iter::from_fn(|| mailbox.pending.lock().take(|_| false)).collect()
    }

    #[test]
    fn the_latest_update_of_the_source_counts() {
        let mailbox = Mailbox::default();
        mailbox.update_pod(pod("first"));
        mailbox.update_pod(pod("second"));
        assert_eq!(read(&mailbox), [Event::Wanted(pod("second"))]);
    }

    #[test]
    fn a_removal_is_final() {
        let mailbox = Mailbox::default();
        mailbox.update_pod(pod("first"));
        mailbox.remove_pod();
        mailbox.update_pod(pod("again"));
        mailbox.update_pod(pod("and again"));
        assert_eq!(read(&mailbox), [Event::Removed]);
    }

    #[test]
    fn a_removal_replaces_earlier_updates() {
        let mailbox = Mailbox::default();
        for _ in 0..3 {
            mailbox.update_pod(pod("x"));
            mailbox.remove_pod();
        }
        assert_eq!(read(&mailbox), [Event::Removed]);
    }

    #[test]
    fn kills_keep_the_shortest_grace() {
        let mailbox = Mailbox::default();
        let kill = |grace| KillRequest { by: KillRequester::Eviction, grace, failure: None };
        for grace in [None, Some(30), Some(5), Some(10)] {
            mailbox.kill(kill(grace));
        }
        assert_eq!(read(&mailbox), [Event::Kill(kill(Some(5)))]);
    }

    #[test]
    fn hints_are_merged() {
        let mailbox = Mailbox::default();
        for hint in [Hint::Relist, Hint::Probe, Hint::Runtime] {
            mailbox.hint(hint);
        }
        assert_eq!(read(&mailbox), [Event::Hint(Hint::Probe)]);
    }

    #[test]
    fn a_relist_is_news_unless_its_states_are_known() {
        let states = |state| ListedStates::from([("a".to_owned(), state)]);
        let mailbox = Mailbox::default();
        let take = |known: i32| mailbox.pending.lock().take(|listed| *listed == states(known));
        mailbox.relisted(states(1));
        assert_eq!(take(1), None);
        assert_eq!(take(0), None, "it is not asked again");
        mailbox.relisted(states(0));
        mailbox.relisted(states(1));
        assert_eq!(take(0), Some(Event::Hint(Hint::Relist)), "the last relist counts");
        mailbox.relisted(states(1));
        mailbox.hint(Hint::Runtime);
        assert_eq!(take(1), Some(Event::Hint(Hint::Runtime)), "other hints stay");
        assert_eq!(take(0), None);
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken() {
        let mailbox = Mailbox::default();
        let writer = mailbox.clone();
        let (event, ()) =
            tokio::join!(mailbox.next(|_| false), async move { writer.hint(Hint::Runtime) });
        assert_eq!(event, Event::Hint(Hint::Runtime));
    }
}
