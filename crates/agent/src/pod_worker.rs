//! The pod worker: one task owns one pod, and only it acts on that pod.
//!
//! The worker takes events, makes one step of the pure state machine for each, and carries out the effects. Whatever takes time is a
//! future held here, not a task of its own, so that it ends with the worker: one piece of work at a time, and beside it the pod's
//! background tasks. The mailbox is read while work is under way.

mod background;
mod cleanup;
mod container_config;
mod context;
mod credentials;
mod garbage;
mod grace_budget;
mod handler;
mod image;
mod image_volumes;
mod kill;
mod objects;
mod prober;
mod publisher;
mod reader;
mod release;
mod sandbox;
mod spans;
mod starter;
mod stopper;
mod sync;
mod work;

use std::sync::Arc;

use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::lifecycle::{Context, Effect, Event, Stage, State, Transition, WorkerStart};
use oarsman_core::report::StageReport;
use oarsman_core::time::Mono;

use crate::mailbox::Mailbox;
use crate::node::{AgentContext, WorkerNotice};

pub(crate) use background::BackgroundTasks;
pub(crate) use prober::Prober;

use background::Background;
use context::PodContext;
use work::Work;

#[cfg(test)]
mod tests;

/// Runs the pod's life to its end.
pub(crate) async fn run(
    node: Arc<AgentContext>,
    uid: PodUid,
    name: FullName,
    begin: WorkerStart,
    mailbox: Mailbox,
) {
    let context = Arc::new(PodContext::new(node, uid, name));
    let first = context.node.decisions.begin(begin);
    let mut worker = PodWorker {
        background: Background::new(Arc::clone(&context)),
        context,
        mailbox,
        work: None,
        wake: None,
    };
    let mut state = worker.carry_out(first).await;
    while let Some(current) = state {
        let event = worker.next(&current).await;
        let PodContext { name, uid, .. } = &*worker.context;
        tracing::debug!(pod = %name, %uid, reason = ?event, detail = ?current.stage(), "pod worker event");
        let step = worker.context.node.decisions.step(current, event, &worker.step_context());
        state = worker.carry_out(step).await;
    }
}

struct PodWorker {
    context: Arc<PodContext>,
    mailbox: Mailbox,
    work: Option<Work>,
    background: Background,
    wake: Option<Mono>,
}

impl PodWorker {
    fn step_context(&self) -> Context {
        let clock = &self.context.node.seams.clock;
        Context {
            now: clock.mono(),
            jitter: clock.jitter(),
            requeue: self.context.node.config.requeue,
        }
    }

    /// The next event: the result of work first, so that a finished kill is not shortened, then the mailbox, then background
    /// tasks, then the timer.
    async fn next(&mut self, state: &State) -> Event {
        let clock = Arc::clone(&self.context.node.seams.clock);
        let reader = &self.context.reader;
        loop {
            tokio::select! {
                biased;
                event = work::wait_until_done(&mut self.work) => {
                    self.work = None;
                    return event;
                }
                event = self.mailbox.next(|listed| reader.is_acted_on(listed)) => return event,
                hint = self.background.next() => {
                    self.publish_probe_result(state);
                    return Event::Hint(hint);
                }
                () = reader.was_read() => self.background.reconcile(state.pod()),
                () = clock.until(self.wake) => {
                    self.wake = None;
                    return Event::Wake;
                }
            }
        }
    }

    /// What a probe found is told at once: the sync that it causes may have to wait for another, which pulls an image, say. While a pod
    /// goes down, the state machine publishes for every hint.
    fn publish_probe_result(&self, state: &State) {
        if state.stage() == Stage::Syncing
            && let Some(pod) = state.pod()
        {
            self.context.publish(pod, None, None);
        }
    }

    /// Carries out the effects of a step; none when the pod's life is over.
    async fn carry_out(&mut self, (state, effects): Transition) -> Option<State> {
        self.report(&state);
        let mut is_over = false;
        for effect in effects {
            is_over |= effect == Effect::Forget;
            self.perform(effect).await;
        }
        (!is_over).then_some(state)
    }

    /// Where the pod is in its life, and when what did not succeed is tried again and why.
    fn report(&self, state: &State) {
        let stage = match state.stage() {
            Stage::Loading | Stage::Syncing => StageReport::Syncing,
            Stage::Terminating => StageReport::Terminating,
            Stage::Terminated => StageReport::Terminated,
            Stage::Finished => StageReport::Finished,
        };
        let PodContext { node, uid, .. } = &*self.context;
        node.pod_updates.set_stage(uid, state.stage());
        node.report_store.set_stage(uid, stage);
        if let Some(waiting) = state.waiting() {
            node.report_store.set_wait(uid, waiting.next_try(), waiting.reason());
        }
    }

    /// Does what is done on the spot, and starts what takes time.
    async fn perform(&mut self, effect: Effect) {
        let context = Arc::clone(&self.context);
        match effect {
            Effect::StartRead { pod } => self.work = Some(Work::read(context, pod)),
            Effect::StartSync { pod, why } => {
                tracing::debug!(pod = %context.name, uid = %context.uid, reason = ?why, "pod sync started");
                self.work = Some(Work::sync(context, pod, why));
            }
            Effect::CancelSync => self.work.iter().for_each(Work::cancel),
            Effect::StartKill { pod, grace, why } => {
                context.report_kill(why);
                self.work = Some(Work::kill(context, pod, grace, why));
            }
            Effect::ShortenKill { grace } => self.work.iter().for_each(|work| work.shorten(grace)),
            Effect::StopLivenessProbes => self.background.pod_is_terminating(),
            Effect::StopProbes => {
                self.background.stop();
                context.forget_probes();
            }
            Effect::Publish { pod, termination, failure } => {
                context.publish(&pod, Some(termination), failure.as_ref());
            }
            Effect::Stopped => self.notify(WorkerNotice::Stopped(context.uid.clone())).await,
            Effect::StartRelease(part) => self.work = Some(Work::release(context, part)),
            Effect::StartRecord => self.work = Some(Work::record(context)),
            Effect::AllowDelete => {
                context.node.statuses.allow_delete(&context.uid, &context.name);
            }
            Effect::Finished => self.notify(WorkerNotice::Finished(context.uid.clone())).await,
            Effect::StartKillLeftovers { pod } => {
                self.work = Some(Work::kill_leftovers(context, pod));
            }
            Effect::StartCleanup => self.work = Some(Work::cleanup(context)),
            Effect::Forget => self.notify(WorkerNotice::Forgotten(context.uid.clone())).await,
            Effect::Record { pod, event } => context.node.recorder.record(&pod, [event]),
            Effect::WakeAt(at) => self.wake = Some(at),
        }
    }

    /// Tells the supervisor, which waits for no worker. One that is gone takes its workers along in a moment.
    async fn notify(&mut self, notice: WorkerNotice) {
        self.context.node.notices.send(notice).await.ok();
    }
}
