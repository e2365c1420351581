//! One task owns one pod, and only it acts on that pod.
//!
//! The worker hears events, takes one step of the pure machine for each, and carries out what comes of it. There is at
//! most one piece of work under way; it is a future held here, not a task of its own, so that it ends with the worker.

mod adopt;
mod clear;
mod describe;
mod hooks;
mod image;
mod journal;
mod keys;
mod kill;
mod lookup;
mod publish;
mod release;
mod room;
mod start;
mod stop;
mod sweep;
mod sync;
mod work;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::lifecycle::{Begin, Context, Effect, Event, Stage, State, Step, Verdict};
use oarsman_core::time::Mono;

use crate::mailbox::Mailbox;
use crate::node::{Node, Notice};

use journal::Again;
use room::Room;
use work::Work;

/// How a worker comes to be.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A source holds the pod.
    Wanted(Arc<Pod>),
    /// A source holds the pod, but it was not admitted.
    Rejected(Arc<Pod>, Verdict),
    /// Only the runtime knows of it.
    Orphan,
}

impl Origin {
    fn pod(&self) -> Option<&Pod> {
        match self {
            Self::Wanted(pod) | Self::Rejected(pod, _) => Some(pod),
            Self::Orphan => None,
        }
    }
}

/// Lives a pod's life to its end.
pub(crate) async fn run(
    node: Arc<Node>,
    uid: PodUid,
    name: FullName,
    origin: Origin,
    mailbox: Mailbox,
) {
    let room = Arc::new(Room::new(node, uid, name));
    let quiet = room.first_look(origin.pod()).await;
    let begin = match origin {
        Origin::Wanted(pod) => Begin::Wanted { pod, quiet },
        Origin::Rejected(pod, verdict) => Begin::Rejected { pod, quiet, verdict },
        Origin::Orphan => Begin::Orphan,
    };
    let first = room.node.decisions.begin(begin, &context(&room));
    let mut worker = Worker { room, mailbox, work: None, wake: None, stopped: false };
    let mut state = worker.settle(first).await;
    while let Some(current) = state {
        let event = worker.next().await;
        tracing::debug!(?event, stage = ?current.stage());
        if current.stage() == Stage::Finished && matches!(event, Event::Hint(_)) {
            worker.quell(current.pod().cloned());
        }
        let again = Again::after(&event);
        let room = &worker.room;
        let step = room.node.decisions.step(current, event, &context(room));
        state = worker.settle(step).await;
        again.into_iter().for_each(|again| worker.note_next_try(again));
    }
}

struct Worker {
    room: Arc<Room>,
    mailbox: Mailbox,
    work: Option<Work>,
    wake: Option<Mono>,
    /// Whether the supervisor knows that nothing runs any more.
    stopped: bool,
}

fn context(room: &Room) -> Context {
    let clock = &room.node.seams.clock;
    Context { now: clock.mono(), dice: clock.dice(), requeue: room.node.config.requeue }
}

impl Worker {
    /// The next thing the machine should hear of: what work has to say first, so that a finished kill is not
    /// shortened, then the mail, then the timer.
    async fn next(&mut self) -> Event {
        let clock = &self.room.node.seams.clock;
        tokio::select! {
            biased;
            event = work::done(&mut self.work) => {
                self.work = None;
                event
            }
            event = self.mailbox.next() => event,
            () = clock.until(self.wake) => {
                self.wake = None;
                Event::Wake
            }
        }
    }

    /// Carries out what a step wants done; none when the pod's life is over.
    async fn settle(&mut self, (state, effects): Step) -> Option<State> {
        self.note_stage(&state);
        if state.stage() >= Stage::Terminated && !self.stopped {
            self.stopped = true;
            self.tell(Notice::Stopped(self.room.uid.clone())).await;
        }
        for effect in effects {
            if let Some(notice) = self.perform(effect).await {
                let over = matches!(notice, Notice::Forgotten(_));
                self.tell(notice).await;
                if over {
                    return None;
                }
            }
        }
        Some(state)
    }

    /// Looks whether something of a pod runs that is done with, and ends it.
    fn quell(&mut self, pod: Option<Arc<Pod>>) {
        if self.work.is_none() {
            self.work = Some(Work::quell(Arc::clone(&self.room), pod));
        }
    }

    /// Tells the supervisor; one that is gone takes its workers along in a moment.
    async fn tell(&mut self, notice: Notice) {
        self.room.node.notices.send(notice).await.ok();
    }

    async fn perform(&mut self, effect: Effect) -> Option<Notice> {
        let room = Arc::clone(&self.room);
        let uid = room.uid.clone();
        match effect {
            Effect::StartSync { pod, .. } => self.work = Some(Work::sync(room, pod)),
            Effect::CancelSync => self.work.iter().for_each(Work::cancel),
            Effect::StartKill { pod, grace, why } => {
                room.note_kill(why);
                self.work = Some(Work::kill(room, pod, grace, why));
            }
            Effect::ShortenKill { grace } => self.work.iter().for_each(|work| work.shorten(grace)),
            // Nothing is restarted in a pod that goes down, whatever a probe has found; readiness still counts.
            Effect::StopLivenessProbes => {}
            Effect::StopProbes => room.forget_probes(),
            Effect::Publish { pod, standing, verdict } => {
                room.publish(&pod, Some(standing), verdict.as_ref()).await;
            }
            Effect::StartRelease(part) => self.work = Some(Work::release(room, part)),
            Effect::AllowDelete => room.node.statuses.allow_delete(&uid, &room.name),
            Effect::Finished => return Some(Notice::Finished(uid)),
            // Whether the pod came back meanwhile is the supervisor's to know: it hears the sources.
            Effect::Forget { .. } => {
                room.clear_away().await;
                return Some(Notice::Forgotten(uid));
            }
            Effect::Record { pod, event } => room.node.recorder.record(&pod, [event]),
            Effect::WakeAt(at) => self.wake = Some(at),
        }
        None
    }
}
