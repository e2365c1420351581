//! The sync loop of the agent: knows which pods are wanted and the worker of each; decides nothing about a single pod.
//!
//! It merges the sources, asks for the admission of pods, starts workers and passes messages on. It never waits for a worker:
//! messages go into a mailbox that cannot fill up.

mod census;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::Pod;
use oarsman_cluster::ObjectChanges;
use oarsman_core::active_pods::PodStage;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::ledger::{self, Arrival, Claim, Gate, Ledger};
use oarsman_core::lifecycle::{Begin, Hint, KillRequest, Stage, Verdict};
use oarsman_core::pod::PodExt;
use oarsman_core::references::Change as Elsewhere;
use oarsman_core::sources::{Change, Delta, Merged, Merger, Source};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use crate::active_pods::ActivePodsWriter;
use crate::autonomy::Recalled;
use crate::book::nobodys;
use crate::mailbox::Mailbox;
use crate::node::{Node, Notice};
use crate::pod_worker;
use crate::runtime_events::News;
use crate::tasks::RESTART_AFTER;

use census::Census;

#[cfg(test)]
mod tests;

/// The delay before a new worker is started after one has panicked.
const AFTER_A_MISTAKE: Duration = Duration::from_secs(3);

/// The admission handler, shared with the supervisor.
pub type SharedGate = Arc<dyn Gate + Send + Sync>;

/// Commands to the running agent.
#[derive(Debug)]
pub enum Command {
    /// Kill this pod.
    Kill(PodUid, KillRequest),
    /// Signal once no pod is left; used when the agent ends with its pods.
    TellWhenEmpty(oneshot::Sender<()>),
    /// Signal once the API server has accepted all statuses.
    TellWhenToldAll(oneshot::Sender<()>),
    /// Answer, as proof that the sync loop runs.
    Answer(oneshot::Sender<()>),
}

pub(crate) struct Supervisor {
    node: Arc<Node>,
    merger: Merger,
    ledger: Ledger,
    gate: SharedGate,
    workers: BTreeMap<PodUid, Mailbox>,
    /// The read model of the pods here; nothing else writes it.
    pods: ActivePodsWriter,
    tasks: JoinSet<()>,
    names_of_tasks: BTreeMap<Id, WorkerTask>,
    /// At most one relist, so that a runtime that hangs delays nothing else.
    counts: JoinSet<Option<Census>>,
    /// Whether another relist is due once this one has ended.
    recount: bool,
    census: Census,
    /// Receivers that wait until no pod is left.
    leaving: Vec<oneshot::Sender<()>>,
}

/// The task of a worker.
struct WorkerTask {
    uid: PodUid,
    name: FullName,
    /// Set when the pod was not admitted.
    rejected: Option<Verdict>,
}

/// The channels that the sync loop selects from.
pub(crate) struct Ears {
    pub(crate) sources: SelectAll<BoxStream<'static, (Source, Vec<Arc<Pod>>)>>,
    /// The cluster's pods from checkpoints, if it is unreachable.
    pub(crate) recalled: Recalled,
    /// Changes of objects that pods refer to.
    pub(crate) objects: ObjectChanges,
    pub(crate) notices: mpsc::Receiver<Notice>,
    pub(crate) news: mpsc::Receiver<News>,
    pub(crate) commands: OwnedMutexGuard<mpsc::Receiver<Command>>,
}

impl Supervisor {
    pub(crate) fn new(
        node: Arc<Node>,
        sources: &[Source],
        gate: SharedGate,
        pods: ActivePodsWriter,
    ) -> Self {
        Self {
            merger: Merger::new(sources.iter().copied()),
            ledger: Ledger::default(),
            gate,
            workers: BTreeMap::new(),
            pods,
            tasks: JoinSet::new(),
            names_of_tasks: BTreeMap::new(),
            counts: JoinSet::new(),
            recount: false,
            census: Census::default(),
            leaving: Vec::new(),
            node,
        }
    }

    /// Runs until it is dropped, and its workers with it. Each turn is `syncLoopIteration` of the Go kubelet.
    pub(crate) async fn run(mut self, mut ears: Ears) {
        let mut audit = tokio::time::interval(self.node.config.audit);
        audit.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                Some(notice) = ears.notices.recv() => self.noted(notice),
                Some(command) = ears.commands.recv() => self.asked(command),
                () = self.pods.reported() => self.pods.apply_reports(),
                Some((source, pods)) = ears.sources.next() => self.told(source, pods),
                Some(pods) = ears.recalled.next() => self.recalled(pods),
                Some(change) = ears.objects.next() => self.changed_elsewhere(&change),
                Some(news) = ears.news.recv() => match news {
                    News::Pod(uid) => self.hint(&uid, Hint::Runtime),
                    News::Anything => audit.reset_at(Instant::now()),
                },
                Some(ended) = self.tasks.join_next_with_id() => self.ended(&ended),
                Some(counted) = self.counts.join_next() => {
                    if counted.as_ref().is_err_and(JoinError::is_panic) {
                        self.node.measures.task_panicked("relist");
                        audit.reset_after(RESTART_AFTER);
                    }
                    self.counted(counted);
                }
                _ = audit.tick() => self.count(),
            }
        }
    }

    /// A source sent its full set.
    fn told(&mut self, source: Source, pods: Vec<Arc<Pod>>) {
        let first = !self.merger.all_ready();
        let pods = self.without_mirrors(source, pods);
        let merged = self.merger.set(source, pods, self.node.seams.clock.wall());
        self.merged(merged);
        if first && self.merger.all_ready() {
            self.node.mirrors.set_sources_ready();
            self.count();
        }
    }

    /// The API server is unreachable: these are its pods from checkpoints.
    fn recalled(&mut self, pods: Vec<Arc<Pod>>) {
        let merged = self.merger.recall(Source::Api, pods, self.node.seams.clock.wall());
        self.merged(merged);
    }

    fn merged(&mut self, Merged { deltas, refused }: Merged) {
        for (pod, event) in refused {
            self.node.recorder.record(&pod, [event]);
        }
        let added = |delta: &Delta| delta.change == Change::Add;
        let (new, changed): (Vec<Delta>, Vec<Delta>) = deltas.into_iter().partition(added);
        for delta in changed {
            self.changed(&delta);
        }
        self.arrive(new.into_iter().map(|delta| delta.pod).collect());
    }

    /// Takes out mirror pods: they are copies of static pods that we run already.
    fn without_mirrors(&self, source: Source, pods: Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
        let (mirrors, pods): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod.is_mirror());
        if source == Source::Api {
            self.node.mirrors.observe(mirrors.into_iter().map(Arc::unwrap_or_clone).collect());
        }
        pods
    }

    fn changed(&mut self, Delta { change, pod }: &Delta) {
        let uid = pod.uid();
        match change {
            Change::Remove => {
                let only_waited = self.ledger.withdrawn(&uid);
                match self.workers.get(&uid).filter(|_| !only_waited) {
                    Some(mailbox) => mailbox.removed(),
                    None => {
                        self.pods.update(|pods| pods.remove(&uid));
                        self.node.book.forget(&uid);
                    }
                }
            }
            // Mostly our own status, back from the API server; only a terminal phase set by others matters to the worker.
            Change::Reconcile if !pod.has_terminal_phase() => self.compare(pod),
            Change::Add | Change::Update | Change::Delete | Change::Reconcile => {
                self.ledger.updated(pod);
                self.pods.update(|pods| pods.edit_pod(pod));
                self.compare(pod);
                if let Some(mailbox) = self.workers.get(&uid) {
                    self.node.book.wanted(pod, false);
                    mailbox.wanted(Arc::clone(pod));
                }
            }
        }
    }

    /// Compares the status that the API server has with the one we published.
    fn compare(&self, pod: &Pod) {
        if let Some(status) = pod.status.as_ref().filter(|_| !pod.is_static()) {
            self.node.statuses.reconcile(&pod.uid(), status);
        }
    }

    /// New pods, or pods that come back. One whose earlier life is not over yet waits for the end of that: [`Self::noted`] looks
    /// then what the sources hold.
    fn arrive(&mut self, pods: Vec<Arc<Pod>>) {
        let new = pods.into_iter().filter(|pod| !self.workers.contains_key(&pod.uid())).collect();
        let arrivals = self.ledger.arrive(new, self.gate.as_ref());
        arrivals.into_iter().for_each(|arrival| self.let_in(arrival));
    }

    fn let_in(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Admitted(pod) => {
                self.node.measures.containers_per_pod.count(pod.all_containers().len());
                self.employ(pod.uid(), pod.full_name(), Begin::Wanted(pod));
            }
            Arrival::Rejected(pod, rejection) => {
                self.node.recorder.record(&pod, [rejection.event()]);
                let begin = Begin::Rejected(Arc::clone(&pod), rejection.into());
                self.employ(pod.uid(), pod.full_name(), begin);
            }
            Arrival::Waits(pod) => {
                self.node.book.wanted(&pod, true);
                self.pods.update(|pods| pods.set_pod(&pod, PodStage::Waiting));
                tracing::info!(pod = %pod.full_name(), uid = %pod.uid(), "pod waits for the end of the previous pod of its name");
            }
        }
    }

    fn employ(&mut self, uid: PodUid, name: FullName, begin: Begin) {
        self.employ_after(Duration::ZERO, uid, name, begin);
    }

    fn employ_after(&mut self, wait: Duration, uid: PodUid, name: FullName, begin: Begin) {
        let mailbox = Mailbox::default();
        self.workers.insert(uid.clone(), mailbox.clone());
        match &begin {
            Begin::Wanted(pod) | Begin::Rejected(pod, _) => {
                self.node.book.wanted(pod, false);
                self.set_pod(pod);
                if pod.is_static() {
                    self.node.mirrors.add_static_pod(pod);
                }
            }
            Begin::Orphan => {
                self.node.book.orphan(&uid, &name);
                self.set_pod(&Arc::new(nobodys(&uid, &name)));
                self.node.mirrors.add_terminating(&uid, &name);
            }
        }
        let rejected = match &begin {
            Begin::Rejected(_, verdict) => Some(verdict.clone()),
            Begin::Wanted(_) | Begin::Orphan => None,
        };
        let life =
            pod_worker::run(Arc::clone(&self.node), uid.clone(), name.clone(), begin, mailbox);
        let task = self.tasks.spawn(async move {
            // Even a sleep of nothing costs a tick of the timer.
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            life.await;
        });
        self.names_of_tasks.insert(task.id(), WorkerTask { uid, name, rejected });
    }

    /// Adds a pod that gets a worker to the read model.
    fn set_pod(&self, pod: &Arc<Pod>) {
        self.pods.update(|pods| pods.set_pod(pod, PodStage::Worker(Stage::Loading)));
    }

    fn noted(&mut self, notice: Notice) {
        match notice {
            Notice::Stopped(uid) => {
                self.ledger.stopped(&uid);
                self.node.seams.cluster.forget(&uid);
            }
            Notice::Finished(uid) => {
                let next = self.ledger.finished(&uid, self.gate.as_ref());
                next.into_iter().for_each(|arrival| self.let_in(arrival));
            }
            Notice::Forgotten(uid) => {
                self.workers.remove(&uid);
                self.node.statuses.forget(&uid);
                self.node.seams.cluster.forget(&uid);
                self.node.mirrors.remove_pod(&uid);
                self.pods.update(|pods| pods.remove(&uid));
                self.node.book.forget(&uid);
                // A source may have added it again while it was terminating.
                let back = self.merger.pod(&uid).cloned();
                self.arrive(back.into_iter().collect());
                self.tell_if_empty();
            }
        }
    }

    /// A worker's task has ended. One that panicked gets a successor, which finds out anew what there is; after a while,
    /// for it may well make the same mistake.
    fn ended(&mut self, ended: &Result<(Id, ()), JoinError>) {
        let (id, failed) = match ended {
            Ok((id, ())) => (*id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let Some(task) = self.names_of_tasks.remove(&id) else { return };
        let WorkerTask { uid, name, rejected } = task;
        if failed && self.workers.contains_key(&uid) {
            tracing::error!(pod = %name, %uid, "pod worker panicked, will be restarted");
            self.node.measures.task_panicked("pod worker");
            let begin = match (self.merger.pod(&uid).cloned(), rejected) {
                (Some(pod), Some(verdict)) => Begin::Rejected(pod, verdict),
                (Some(pod), None) => Begin::Wanted(pod),
                (None, _) => Begin::Orphan,
            };
            self.employ_after(AFTER_A_MISTAKE, uid, name, begin);
        }
    }

    /// Starts a relist of the runtime and the disk.
    fn count(&mut self) {
        self.recount = !self.counts.is_empty();
        if !self.recount {
            self.counts.spawn(census::take(Arc::clone(&self.node)));
        }
    }

    /// Handles a relist, as `HandlePodCleanups` does: workers of changed pods get a hint, and orphans of ours are terminated.
    fn counted(&mut self, census: Result<Option<Census>, JoinError>) {
        // A relist that became due while this one was under way may see more than this one.
        if self.recount {
            self.count();
        }
        let Ok(Some(census)) = census else { return };
        for uid in census.changed_since(&self.census) {
            self.hint(uid, Hint::Audit);
        }
        for (uid, name, is_ours) in census.pods() {
            if self.claim(uid, is_ours) == Claim::Orphan {
                tracing::info!(pod = %name, %uid, "orphaned pod found, will be terminated");
                self.employ(uid.clone(), name.clone(), Begin::Orphan);
            }
        }
        self.census = census;
    }

    fn claim(&self, uid: &PodUid, is_ours: bool) -> Claim {
        let is_known = self.workers.contains_key(uid) || self.merger.pod(uid).is_some();
        ledger::claim(is_ours, is_known, self.merger.all_ready())
    }

    fn asked(&mut self, command: Command) {
        match command {
            Command::Kill(uid, request) => self.kill(&uid, request),
            // A receiver that is gone has given up.
            Command::Answer(who) => drop(who.send(())),
            Command::TellWhenToldAll(who) => self.node.statuses.flush(who),
            Command::TellWhenEmpty(who) => {
                self.leaving.push(who);
                self.tell_if_empty();
            }
        }
    }

    fn tell_if_empty(&mut self) {
        if self.workers.is_empty() {
            // A receiver that is gone does not need the signal.
            self.leaving.drain(..).filter_map(|who| who.send(()).err()).for_each(drop);
        }
    }

    fn kill(&self, uid: &PodUid, request: KillRequest) {
        if let Some(mailbox) = self.workers.get(uid) {
            mailbox.kill(request);
        }
    }

    /// Workers of pods that refer to the object sync again.
    fn changed_elsewhere(&self, change: &Elsewhere) {
        let users = self
            .workers
            .keys()
            .filter(|uid| self.merger.pod(uid).is_some_and(|pod| change.concerns(pod)));
        users.for_each(|uid| self.hint(uid, Hint::Node));
    }

    fn hint(&self, uid: &PodUid, hint: Hint) {
        if let Some(mailbox) = self.workers.get(uid) {
            mailbox.hint(hint);
        }
    }
}
