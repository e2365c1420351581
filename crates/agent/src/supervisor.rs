//! The sync loop of the agent: knows which pods are wanted and the worker of each; decides nothing about a single pod.
//!
//! It merges the sources, asks for the admission of pods, starts workers and passes messages on. It never waits for a worker:
//! messages go into a mailbox that cannot fill up.

mod admit;
mod container_gc;
mod pleg;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::{Node, Pod};
use oarsman_cluster::ObjectChanges;
use oarsman_core::active_pods::PodStage;
use oarsman_core::admission::{self, AdmissionNode, AdmitHandler, OwnershipClaim, PodAdmission};
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::lifecycle::{Hint, KillRequest, PodFailure, Stage, WorkerStart};
use oarsman_core::pod::PodExt;
use oarsman_core::references::ObjectChange;
use oarsman_core::sources::{MergeResult, PodConfig, PodDelta, PodOperation, Source};
use oarsman_sync::{RESTART_AFTER, TaskName, ordered_watch};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use crate::active_pods::ActivePodsWriter;
use crate::evented_pleg::PlegEvent;
use crate::mailbox::Mailbox;
use crate::node::{AgentContext, WorkerNotice};
use crate::pod_checkpoints::RestoredPods;
use crate::pod_worker;
use crate::report_store::placeholder_pod;

use pleg::{PlegRecords, Relist};

#[cfg(test)]
mod tests;

/// The delay before a new worker is started after one has panicked.
const WORKER_RESTART_DELAY: Duration = Duration::from_secs(3);

/// The most workers of orphans at a time. A container with the log directory mounted can make any number of directories that look like
/// orphans.
const MAX_ORPHANS: usize = 64;

/// The delay before the first relist is repeated.
const FIRST_RELIST_RETRY: Duration = Duration::from_secs(1);

/// The admission handler, shared with the supervisor.
pub type SharedAdmitHandler = Arc<dyn AdmitHandler + Send + Sync>;

/// Commands to the running agent.
#[derive(Debug)]
pub enum AgentCommand {
    /// Kill the pod, as eviction and shutdown will.
    Kill(PodUid, KillRequest),
    /// Signal once no pod is left; used when the agent ends with its pods.
    NotifyWhenEmpty(oneshot::Sender<()>),
    /// Signal once the API server has accepted all statuses.
    NotifyWhenStatusesSent(oneshot::Sender<()>),
    /// Answer, as proof that the sync loop runs.
    Ping(oneshot::Sender<()>),
}

pub(crate) struct Supervisor {
    node: Arc<AgentContext>,
    pod_config: PodConfig,
    admission: PodAdmission,
    admit_handler: SharedAdmitHandler,
    /// The node as pods are admitted to it.
    admission_node: AdmissionNode,
    /// Pods that ran when this agent started and have no worker yet; none before the first relist, until which no pod is admitted.
    ran_before: Option<BTreeSet<PodUid>>,
    /// Whether the cluster's pods come from checkpoints because the API server does not answer.
    recalled: bool,
    /// Reads of the node's object, for pods that only its labels are against.
    node_reads: JoinSet<Option<Node>>,
    /// Critical pods whose victims take too long to stop.
    room_timeouts: JoinSet<PodUid>,
    workers: BTreeMap<PodUid, Mailbox>,
    /// The read model of the pods here; nothing else writes it.
    pods: ActivePodsWriter,
    tasks: JoinSet<()>,
    worker_tasks: BTreeMap<Id, WorkerTask>,
    /// At most one relist, so that a runtime that hangs delays nothing else.
    relists: JoinSet<Option<Relist>>,
    /// At most one removal of dead containers.
    collections: JoinSet<()>,
    /// Whether another relist is due once this one has ended.
    relist_again: bool,
    pod_records: PlegRecords,
    /// Whether there are orphans that wait for the end of others.
    orphans_wait: bool,
    /// Receivers that wait until no pod is left.
    waiting_for_empty: Vec<oneshot::Sender<()>>,
}

/// The task of a worker.
struct WorkerTask {
    uid: PodUid,
    name: FullName,
    /// Set when the pod was not admitted.
    rejected: Option<PodFailure>,
    is_orphan: bool,
}

/// The channels that the sync loop selects from.
pub(crate) struct SyncLoopInputs {
    pub(crate) sources: SelectAll<BoxStream<'static, (Source, Vec<Arc<Pod>>)>>,
    /// The cluster's pods from checkpoints, if it is unreachable.
    pub(crate) restored_pods: RestoredPods,
    /// Changes of objects that pods refer to.
    pub(crate) objects: ObjectChanges,
    pub(crate) notices: mpsc::Receiver<WorkerNotice>,
    pub(crate) pleg_events: mpsc::Receiver<PlegEvent>,
    pub(crate) commands: OwnedMutexGuard<mpsc::Receiver<AgentCommand>>,
    /// The node as pods are admitted to it, whenever it changes.
    pub(crate) admission_node: ordered_watch::Receiver<AdmissionNode>,
}

impl Supervisor {
    pub(crate) fn new(
        node: Arc<AgentContext>,
        sources: &[Source],
        admit_handler: SharedAdmitHandler,
        pods: ActivePodsWriter,
    ) -> Self {
        Self {
            pod_config: PodConfig::new(sources.iter().copied()),
            admission: PodAdmission::default(),
            admit_handler,
            admission_node: node.config.admission_node.clone(),
            ran_before: None,
            recalled: false,
            node_reads: JoinSet::new(),
            room_timeouts: JoinSet::new(),
            workers: BTreeMap::new(),
            pods,
            tasks: JoinSet::new(),
            worker_tasks: BTreeMap::new(),
            relists: JoinSet::new(),
            collections: JoinSet::new(),
            relist_again: false,
            pod_records: PlegRecords::default(),
            orphans_wait: false,
            waiting_for_empty: Vec::new(),
            node,
        }
    }

    /// Runs until it is dropped, and its workers with it. Each turn is `syncLoopIteration` of the Go kubelet.
    pub(crate) async fn sync_loop(mut self, mut inputs: SyncLoopInputs) {
        let mut relist_timer = tokio::time::interval(self.node.config.relist_period);
        relist_timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut addresses = self.node.addresses.subscribe();
        self.on_admission_node(inputs.admission_node.get());
        inputs.admission_node.mark_seen();
        loop {
            self.node.sync_loop_monitor.record(self.node.seams.clock.mono());
            tokio::select! {
                biased;
                Ok(node) = inputs.admission_node.changed() => self.on_admission_node(node),
                Some(read) = self.node_reads.join_next() => self.on_node_read(read),
                Some(Ok(uid)) = self.room_timeouts.join_next() => self.on_room_timeout(&uid),
                Some(notice) = inputs.notices.recv() => self.on_worker_notice(notice),
                Some(command) = inputs.commands.recv() => self.on_command(command),
                () = self.pods.reported() => self.pods.apply_reports(),
                Some((source, pods)) = inputs.sources.next() => self.on_source_update(source, pods),
                Some(pods) = inputs.restored_pods.next() => self.on_restored_pods(pods),
                Some(change) = inputs.objects.next() => self.on_object_change(&change),
                Ok(_) = addresses.changed() => self.hint_all(Hint::Node),
                Some(event) = inputs.pleg_events.recv() => match event {
                    PlegEvent::Pod(uid) => self.hint(&uid, Hint::Runtime),
                    PlegEvent::Resync => relist_timer.reset_at(Instant::now()),
                },
                Some(ended) = self.tasks.join_next_with_id() => self.on_worker_ended(&ended),
                Some(relisted) = self.relists.join_next() => {
                    if relisted.as_ref().is_err_and(JoinError::is_panic) {
                        self.node.metrics.panics.record(TaskName::Relist);
                        relist_timer.reset_after(RESTART_AFTER);
                    }
                    self.handle_pod_cleanups(relisted);
                    // No pod is admitted before it is known which ones run.
                    if self.ran_before.is_none() {
                        relist_timer.reset_after(FIRST_RELIST_RETRY);
                    }
                }
                _ = relist_timer.tick() => self.start_relist(),
            }
        }
    }

    /// A source sent its full set.
    fn on_source_update(&mut self, source: Source, pods: Vec<Arc<Pod>>) {
        let first = !self.pod_config.all_ready();
        let pods = self.without_mirrors(source, self.without_disabled_fields(pods));
        let merged = self.pod_config.merge(source, pods, self.node.seams.clock.wall());
        self.handle_merged(merged);
        if first && self.pod_config.all_ready() {
            self.node.mirrors.set_sources_ready();
            self.start_relist();
        }
    }

    /// The API server is unreachable: these are its pods from checkpoints.
    fn on_restored_pods(&mut self, pods: Vec<Arc<Pod>>) {
        self.recalled = true;
        let pods = self.without_disabled_fields(pods);
        let merged = self.pod_config.recall(Source::Api, pods, self.node.seams.clock.wall());
        self.handle_merged(merged);
    }

    fn handle_merged(&mut self, MergeResult { deltas, refused }: MergeResult) {
        for (pod, event) in refused {
            self.node.recorder.record(&pod, [event]);
        }
        let added = |delta: &PodDelta| delta.change == PodOperation::Add;
        let (new, changed): (Vec<PodDelta>, Vec<PodDelta>) = deltas.into_iter().partition(added);
        for delta in changed {
            self.handle_pod_update(&delta);
        }
        self.handle_pod_additions(new.into_iter().map(|delta| delta.pod).collect());
    }

    /// Drops the fields of pods whose feature gates are off.
    fn without_disabled_fields(&self, pods: Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
        let features = self.node.config.features;
        pods.into_iter().map(|pod| features.without_disabled_fields(pod)).collect()
    }

    /// Takes out mirror pods: they are copies of static pods that we run already.
    fn without_mirrors(&self, source: Source, pods: Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
        let (mirrors, pods): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod.is_mirror());
        if source == Source::Api {
            self.pods.set_mirrors(&mirrors);
            self.node.mirrors.observe(mirrors.into_iter().map(Arc::unwrap_or_clone).collect());
        }
        pods
    }

    fn handle_pod_update(&mut self, PodDelta { change, pod }: &PodDelta) {
        let uid = pod.uid();
        match change {
            PodOperation::Remove => {
                let only_waited = self.admission.remove_waiting(&uid);
                self.remove_pending(&uid);
                match self.workers.get(&uid).filter(|_| !only_waited) {
                    Some(mailbox) => {
                        self.pods.update(|pods| pods.mark_dropped(&uid));
                        mailbox.remove_pod();
                    }
                    None => {
                        self.pods.update(|pods| pods.remove(&uid));
                        self.node.report_store.remove_pod(&uid);
                        // It may have been the last pod that was held until the first relist.
                        self.signal_if_empty();
                    }
                }
            }
            // Mostly our own status, back from the API server; only a terminal phase set by others matters to the worker.
            PodOperation::Reconcile if !pod.has_terminal_phase() => self.reconcile_status(pod),
            PodOperation::Add
            | PodOperation::Update
            | PodOperation::Delete
            | PodOperation::Reconcile => {
                let pod = &self.apply_update(pod);
                self.pods.update(|pods| pods.edit_pod(pod));
                self.reconcile_status(pod);
                if let Some(mailbox) = self.workers.get(&uid) {
                    self.node.report_store.set_pod(pod, false);
                    mailbox.update_pod(Arc::clone(pod));
                }
            }
        }
    }

    /// Compares the status that the API server has with the one we published.
    fn reconcile_status(&self, pod: &Pod) {
        if let Some(status) = pod.status.as_ref().filter(|_| !pod.is_static()) {
            self.node.metrics.startup.observe(pod, self.node.seams.clock.wall());
            self.node.statuses.reconcile(&pod.uid(), status);
        }
    }

    fn spawn_worker(&mut self, uid: PodUid, name: FullName, begin: WorkerStart) {
        self.spawn_worker_after(Duration::ZERO, uid, name, begin);
    }

    fn spawn_worker_after(
        &mut self,
        wait: Duration,
        uid: PodUid,
        name: FullName,
        begin: WorkerStart,
    ) {
        let mailbox = Mailbox::default();
        self.workers.insert(uid.clone(), mailbox.clone());
        self.ran_before.iter_mut().for_each(|uids| drop(uids.take(&uid)));
        match &begin {
            WorkerStart::Wanted(pod) | WorkerStart::Rejected(pod, _) => {
                self.node.report_store.set_pod(pod, false);
                self.set_pod(pod);
                if pod.is_static() {
                    self.node.mirrors.add_static_pod(pod);
                }
            }
            WorkerStart::Orphan => {
                self.node.report_store.add_orphan(&uid, &name);
                self.set_pod(&Arc::new(placeholder_pod(&uid, &name)));
                self.node.mirrors.add_terminating(&uid, &name);
            }
        }
        let rejected = match &begin {
            WorkerStart::Rejected(_, failure) => Some(failure.clone()),
            WorkerStart::Wanted(_) | WorkerStart::Orphan => None,
        };
        let is_orphan = matches!(begin, WorkerStart::Orphan);
        let worker =
            pod_worker::run(Arc::clone(&self.node), uid.clone(), name.clone(), begin, mailbox);
        let task = self.tasks.spawn(async move {
            // Even a sleep of nothing costs a tick of the timer.
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            worker.await;
        });
        self.worker_tasks.insert(task.id(), WorkerTask { uid, name, rejected, is_orphan });
    }

    /// Adds a pod that gets a worker to the read model.
    fn set_pod(&self, pod: &Arc<Pod>) {
        self.pods.update(|pods| pods.set_pod(pod, PodStage::Worker(Stage::Loading)));
    }

    fn on_worker_notice(&mut self, notice: WorkerNotice) {
        match notice {
            WorkerNotice::Stopped(uid) => {
                let ready = self.admission.free_resources(&uid);
                self.handle_admissions(ready);
                self.node.seams.cluster.forget(&uid);
            }
            WorkerNotice::Finished(uid) => self.release_name(&uid),
            WorkerNotice::Forgotten(uid) => {
                self.workers.remove(&uid);
                self.node.statuses.forget(&uid);
                self.node.seams.cluster.forget(&uid);
                self.node.mirrors.remove_pod(&uid);
                self.node.resizes.set(&uid, false);
                self.pods.update(|pods| pods.remove(&uid));
                self.node.report_store.remove_pod(&uid);
                self.node.metrics.startup.forget(&uid);
                // A source may have added it again while it was terminating.
                let back = self.pod_config.pod(&uid).cloned();
                if let Some(back) = &back {
                    self.node.metrics.restarted_pods.increment(back.is_static());
                }
                self.handle_pod_additions(back.into_iter().collect());
                self.signal_if_empty();
            }
        }
    }

    /// A worker's task has ended. One that panicked gets a successor, which finds out anew what there is; after a while,
    /// for it may well make the same mistake.
    fn on_worker_ended(&mut self, ended: &Result<(Id, ()), JoinError>) {
        let (id, failed) = match ended {
            Ok((id, ())) => (*id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let Some(task) = self.worker_tasks.remove(&id) else { return };
        let WorkerTask { uid, name, rejected, .. } = task;
        if failed && self.workers.contains_key(&uid) {
            tracing::error!(pod = %name, %uid, "pod worker panicked, will be restarted");
            self.node.metrics.panics.record(TaskName::PodWorker);
            let wanted = self.admission.admitted_pod(&uid).or_else(|| self.pod_config.pod(&uid));
            let begin = match (wanted.cloned(), rejected) {
                (Some(pod), Some(failure)) => WorkerStart::Rejected(pod, failure),
                (Some(pod), None) => WorkerStart::Wanted(pod),
                (None, _) => WorkerStart::Orphan,
            };
            self.spawn_worker_after(WORKER_RESTART_DELAY, uid, name, begin);
        }
        if self.orphans_wait && self.orphans() == 0 {
            self.orphans_wait = false;
            self.start_relist();
        }
    }

    fn orphans(&self) -> usize {
        self.worker_tasks.values().filter(|task| task.is_orphan).count()
    }

    /// Starts a relist of the runtime and the disk.
    fn start_relist(&mut self) {
        self.relist_again = !self.relists.is_empty();
        if !self.relist_again {
            self.relists.spawn(pleg::relist(Arc::clone(&self.node)));
        }
    }

    /// Handles a relist, as `HandlePodCleanups` does: workers of changed pods get a hint, and orphans of ours are terminated.
    fn handle_pod_cleanups(&mut self, relisted: Result<Option<Relist>, JoinError>) {
        // A relist that became due while this one was under way may see more than this one.
        if self.relist_again {
            self.start_relist();
        }
        let Ok(Some(Relist { records, views })) = relisted else { return };
        self.collect_dead_containers(&views);
        if self.ran_before.is_none() {
            self.ran_before = Some(records.running());
            self.admit_held_pods();
        }
        for (uid, states) in records.changed_since(&self.pod_records) {
            match (self.workers.get(uid), states) {
                (Some(mailbox), Some(states)) => mailbox.relisted(states.clone()),
                (Some(mailbox), None) => mailbox.hint(Hint::Relist),
                (None, _) => {}
            }
        }
        let mut room = MAX_ORPHANS.saturating_sub(self.orphans());
        for (uid, name, is_ours) in records.pods() {
            if self.classify(uid, is_ours) != OwnershipClaim::Orphan {
                continue;
            }
            if room == 0 {
                // Of what is only logs, the next ones are for the next relist that is due.
                self.orphans_wait = records.has_more_than_logs(uid);
                break;
            }
            room -= 1;
            tracing::info!(pod = %name, %uid, "orphaned pod found, will be terminated");
            self.node.metrics.orphaned_pods.increment();
            self.spawn_worker(uid.clone(), name.clone(), WorkerStart::Orphan);
        }
        self.pod_records = records;
    }

    fn classify(&self, uid: &PodUid, is_ours: bool) -> OwnershipClaim {
        let is_known = self.workers.contains_key(uid) || self.pod_config.pod(uid).is_some();
        admission::claim(is_ours, is_known, self.pod_config.all_ready())
    }

    fn on_command(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::Kill(uid, request) => self.kill(&uid, request),
            // A receiver that is gone has given up.
            AgentCommand::Ping(reply) => drop(reply.send(())),
            AgentCommand::NotifyWhenStatusesSent(reply) => self.node.statuses.flush(reply),
            AgentCommand::NotifyWhenEmpty(reply) => {
                self.waiting_for_empty.push(reply);
                self.signal_if_empty();
            }
        }
    }

    fn signal_if_empty(&mut self) {
        if self.workers.is_empty() && !self.holds_pods() {
            // A receiver that is gone does not need the signal.
            self.waiting_for_empty
                .drain(..)
                .filter_map(|reply| reply.send(()).err())
                .for_each(drop);
        }
    }

    fn kill(&self, uid: &PodUid, request: KillRequest) {
        if let Some(mailbox) = self.workers.get(uid) {
            mailbox.kill(request);
        }
    }

    /// Workers of pods that refer to the object sync again.
    fn on_object_change(&self, change: &ObjectChange) {
        let users = self
            .workers
            .keys()
            .filter(|uid| self.pod_config.pod(uid).is_some_and(|pod| change.concerns(pod)));
        users.for_each(|uid| self.hint(uid, Hint::Node));
    }

    /// The node's addresses are in every status.
    fn hint_all(&self, hint: Hint) {
        self.workers.values().for_each(|mailbox| mailbox.hint(hint));
    }

    fn hint(&self, uid: &PodUid, hint: Hint) {
        if let Some(mailbox) = self.workers.get(uid) {
            mailbox.hint(hint);
        }
    }
}
