//! A pod's life, told as rows of "this happens" and "that is done about it".

mod beginning;
mod cleanup;
mod deletion_order;
mod ending;
mod grace;
mod loading;
mod properties;
mod syncing;
mod terminating;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::*;
use crate::pod::SOURCE_ANNOTATION;
use crate::requeue::{Jitter, Requeue};
use crate::time::Mono;

/// A pod from the API server with 30 s of grace.
fn web() -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some("web".to_owned()),
            namespace: Some("default".to_owned()),
            uid: Some("uid-1".to_owned()),
            ..Default::default()
        },
        spec: Some(PodSpec { termination_grace_period_seconds: Some(30), ..Default::default() }),
        ..Default::default()
    }
}

/// The same pod, with its deletion asked for.
fn deleted(grace: i64) -> Pod {
    let mut pod = web();
    pod.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
    pod.metadata.deletion_grace_period_seconds = Some(grace);
    pod
}

/// The same pod, with this phase in the API server's copy of its status.
fn in_phase(pod: Pod, phase: &str) -> Pod {
    let status = PodStatus { phase: Some(phase.to_owned()), ..Default::default() };
    Pod { status: Some(status), ..pod }
}

/// The same pod, made different by a label.
fn labelled(pod: Pod, value: &str) -> Pod {
    let mut pod = pod;
    pod.metadata.labels.get_or_insert_default().insert("version".to_owned(), value.to_owned());
    pod
}

fn wanted(pod: Pod) -> Event {
    Event::Wanted(Arc::new(pod))
}

/// How a life begins, and whether the first read finds nothing running.
#[derive(Clone, Debug)]
struct TestStart {
    how: WorkerStart,
    quiet: bool,
}

/// An admitted pod of which something may run.
fn admitted(pod: Pod) -> TestStart {
    TestStart { how: WorkerStart::Wanted(Arc::new(pod)), quiet: false }
}

/// An admitted pod of which nothing runs.
fn quiet(pod: Pod) -> TestStart {
    TestStart { quiet: true, ..admitted(pod) }
}

fn orphan() -> TestStart {
    TestStart { how: WorkerStart::Orphan, quiet: false }
}

fn synced(outcome: SyncOutcome) -> Event {
    Event::SyncDone { outcome, look_again: None }
}

fn killed() -> Event {
    Event::KillDone(KillOutcome::Ok)
}

fn released() -> Event {
    Event::ReleaseDone(Ok(()))
}

fn from_file(pod: Pod) -> Pod {
    annotated(pod, SOURCE_ANNOTATION, "file")
}

fn annotated(pod: Pod, key: &str, value: &str) -> Pod {
    let mut pod = pod;
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(key.to_owned(), value.to_owned());
    pod
}

fn evict(grace: Option<i64>) -> Event {
    Event::Kill(KillRequest {
        by: KillRequester::Eviction,
        grace,
        failure: Some(PodFailure::disrupted("Evicted", "out of memory")),
    })
}

fn second(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

/// A life under test: its state, and a clock that the test turns by hand. Draws are always zero.
struct PodUnderTest {
    state: State,
    now: Mono,
}

impl PodUnderTest {
    /// A life whose first read, if it needs one, went well; and what was done then.
    fn begin(TestStart { how, quiet }: TestStart) -> (Self, Vec<String>) {
        let (state, effects) = begin(how);
        let mut life = Self { state, now: second(0) };
        let effects: Vec<String> = effects.iter().map(brief).collect();
        if effects != ["read"] {
            return (life, effects);
        }
        let next = life.tell(Event::ReadDone(Ok(quiet)));
        (life, next)
    }

    /// A pod whose first sync went well.
    fn running(pod: Pod) -> Self {
        let (mut life, _) = Self::begin(admitted(pod));
        life.tell(synced(SyncOutcome::Ok));
        life
    }

    /// A pod whose kill is under way.
    fn terminating(pod: Pod) -> Self {
        let (life, effects) = Self::begin(admitted(pod));
        assert!(effects.iter().any(|e| e.starts_with("kill")), "not terminating: {effects:?}");
        life
    }

    fn at(&mut self, now: u64) -> &mut Self {
        self.now = second(now);
        self
    }

    fn tell(&mut self, event: Event) -> Vec<String> {
        let (state, effects) = step(self.state.clone(), event, &context(self.now));
        self.state = state;
        effects.iter().map(brief).collect()
    }

    /// Tells each event and checks what is done about it.
    fn follows<const ROWS: usize>(&mut self, table: [(&str, Event, &[&str]); ROWS]) {
        for (name, event, want) in table {
            assert_eq!(self.tell(event), want, "{name}");
        }
    }
}

fn context(now: Mono) -> Context {
    Context { now, jitter: Jitter::from_bits(0), requeue: Requeue::default() }
}

/// An effect in a few words.
fn brief(effect: &Effect) -> String {
    match effect {
        Effect::StartRead { .. } => "read".to_owned(),
        Effect::StartSync { why, .. } => format!("sync {why:?}"),
        Effect::CancelSync => "cancel sync".to_owned(),
        Effect::StartKill { grace, why, .. } => format!("kill in {} {why:?}", grace.seconds()),
        Effect::ShortenKill { grace } => format!("shorten to {}", grace.seconds()),
        Effect::StopLivenessProbes => "stop liveness".to_owned(),
        Effect::StopProbes => "stop probes".to_owned(),
        Effect::Publish { termination, failure, .. } => match failure {
            Some(failure) => format!("publish {termination:?} {}", failure.reason),
            None => format!("publish {termination:?}"),
        },
        Effect::Stopped => "stopped".to_owned(),
        Effect::StartRelease(part) => format!("release {part:?}"),
        Effect::StartRecord => "record".to_owned(),
        Effect::StartKillLeftovers { .. } => "leftovers".to_owned(),
        Effect::StartCleanup => "clean up".to_owned(),
        Effect::AllowDelete => "allow delete".to_owned(),
        Effect::Finished => "finished".to_owned(),
        Effect::Forget => "forget".to_owned(),
        Effect::Record { event, .. } => format!("event {}", event.reason),
        Effect::WakeAt(at) => format!("wake at {}", at.0.as_secs()),
    }
}
