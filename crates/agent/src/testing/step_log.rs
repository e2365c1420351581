//! Core's decisions, and a log of every step of every worker.

use std::time::Duration;

use oarsman_core::ids::PodUid;
use oarsman_core::lifecycle::{self, Context, Effect, Event, State, Transition, WorkerStart};
use oarsman_core::pod::PodExt;
use oarsman_sync::Guarded;
use tokio::time::Instant;

use crate::decisions::Decisions;

/// Events and effects of workers, and when they were.
pub(crate) struct StepLog {
    began: Instant,
    entries: Guarded<Vec<LoggedStep>>,
    trap: Guarded<Option<&'static str>>,
}

struct LoggedStep {
    at: Duration,
    uid: PodUid,
    word: String,
}

impl StepLog {
    pub(crate) fn new() -> Self {
        let (entries, trap) = (Guarded::default(), Guarded::default());
        Self { began: Instant::now(), entries, trap }
    }

    /// The next event of that name makes its worker panic.
    pub(crate) fn panic_at(&self, event: &'static str) {
        *self.trap.lock() = Some(event);
    }

    /// Events and effects in their order.
    pub(crate) fn entries_text(&self) -> Vec<String> {
        self.entries.lock().iter().map(|entry| entry.word.clone()).collect()
    }

    /// When that happened to the pod.
    pub(crate) fn times(&self, uid: &str, word: &str) -> Vec<Duration> {
        let entries = self.entries.lock();
        let those = entries.iter().filter(|entry| entry.uid.as_str() == uid && entry.word == word);
        those.map(|entry| entry.at).collect()
    }

    fn push(&self, uid: &PodUid, word: String) {
        let (at, uid) = (self.began.elapsed(), uid.clone());
        self.entries.lock().push(LoggedStep { at, uid, word });
    }

    fn push_effects(&self, uid: &PodUid, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::WakeAt(_) | Effect::Publish { .. } | Effect::Record { .. } => {}
                Effect::StartSync { why, .. } => self.push(uid, format!("StartSync {why:?}")),
                effect => self.push(uid, first_word(&format!("{effect:?}"))),
            }
        }
    }
}

impl Decisions for StepLog {
    fn begin(&self, begin: WorkerStart) -> Transition {
        let uid = match &begin {
            WorkerStart::Wanted(pod) | WorkerStart::Rejected(pod, _) => pod.uid(),
            WorkerStart::Orphan => PodUid::default(),
        };
        self.push(&uid, format!("Begin {}", first_word(&format!("{begin:?}"))));
        let step = lifecycle::begin(begin);
        self.push_effects(&uid, &step.1);
        step
    }

    fn step(&self, state: State, event: Event, cx: &Context) -> Transition {
        let uid = state.pod().map(|pod| pod.uid()).unwrap_or_default();
        let word = first_word(&format!("{event:?}"));
        assert!(self.trap.lock().take_if(|trap| *trap == word).is_none(), "a panic on purpose");
        self.push(&uid, word);
        let step = lifecycle::step(state, event, cx);
        self.push_effects(&uid, &step.1);
        step
    }
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric()).collect()
}
