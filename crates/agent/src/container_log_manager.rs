//! The container log manager: checks the sizes of running containers' logs, and rotates those that are full.
//!
//! One task has all checks and rotations as futures of its own. File work is bounded by the number of workers; a runtime that does not
//! answer holds up only the container that it was asked about, and no worker.

mod rotation;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use oarsman_core::ids::ContainerId;
use oarsman_core::log_rotation::{
    ContainerLogFile, LogAction, LogFileState, LogGrowth, LogRotationPolicy, running_logs,
};
use oarsman_core::time::Mono;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::active_pods::ActivePodsReader;
use crate::node::AgentContext;

use rotation::LogRotator;

/// Logs that are checked by one call.
const BATCH: usize = 128;
/// Between two looks through the read model at least. Each start and end of a container changes it, and many may come at once.
const SCAN_PAUSE: Duration = Duration::from_secs(1);

/// Checks and rotates logs until it is dropped.
pub(crate) async fn run(node: Arc<AgentContext>, pods: ActivePodsReader) {
    let Some(policy) = node.config.log_rotation else { return };
    ContainerLogManager::new(node, pods, policy).run().await;
}

struct ContainerLogManager {
    node: Arc<AgentContext>,
    pods: ActivePodsReader,
    policy: LogRotationPolicy,
    rotator: LogRotator,
    logs: BTreeMap<ContainerId, WatchedLog>,
    /// When the read model of pods was looked through last, and when that is done next.
    last_scan: Mono,
    next_scan: Mono,
    work: FuturesUnordered<BoxFuture<'static, LogWork>>,
}

/// The log of a running container.
struct WatchedLog {
    file: ContainerLogFile,
    /// None before its first check.
    growth: Option<LogGrowth>,
    next_check: Mono,
    /// Whether it is being checked or rotated.
    is_busy: bool,
}

/// A piece of work that has ended.
enum LogWork {
    /// What was found of each log; nothing if the directory of logs does not answer.
    Checked(Vec<ContainerId>, Vec<LogFileState>),
    /// A log was opened again or rotated, or could not be.
    Done(ContainerId, LogAction),
}

impl ContainerLogManager {
    fn new(node: Arc<AgentContext>, pods: ActivePodsReader, policy: LogRotationPolicy) -> Self {
        let workers = Arc::new(Semaphore::new(policy.workers.max(1)));
        let rotator = LogRotator { node: Arc::clone(&node), pods: pods.clone(), policy, workers };
        let (logs, work) = (BTreeMap::new(), FuturesUnordered::new());
        let (last_scan, next_scan) = (Mono::default(), Mono::default());
        Self { node, pods, policy, rotator, logs, last_scan, next_scan, work }
    }

    async fn run(mut self) {
        loop {
            let now = self.now();
            if self.next_scan <= now {
                self.scan(now);
            }
            self.check_due(now);
            let wait = self.until_next(now);
            tokio::select! {
                Some(ended) = self.work.next() => self.on_ended(ended),
                // The log of a container that has just started may be full long before the interval is over.
                () = self.pods.changed() => {
                    self.next_scan = self.next_scan.min(self.last_scan + SCAN_PAUSE);
                }
                () = sleep(wait) => {}
            }
        }
    }

    /// Takes over which containers run.
    fn scan(&mut self, now: Mono) {
        let mut before = std::mem::take(&mut self.logs);
        for (id, file) in self.pods.all().iter().flat_map(|pod| running_logs(pod)) {
            let new = WatchedLog { file, growth: None, next_check: now, is_busy: false };
            let log = before.remove(&id).unwrap_or(new);
            self.logs.insert(id, log);
        }
        // One that is being rotated is not rotated a second time when it is listed again.
        self.logs.extend(before.into_iter().filter(|(_, log)| log.is_busy));
        self.last_scan = now;
        self.next_scan = now + self.policy.interval;
    }

    /// Starts to check the logs whose time has come.
    fn check_due(&mut self, now: Mono) {
        let due = self.logs.iter_mut().filter(|(_, log)| !log.is_busy && log.next_check <= now);
        let due = due.map(|(id, log)| {
            log.is_busy = true;
            (id.clone(), log.file.clone())
        });
        let (ids, files): (Vec<_>, Vec<_>) = due.unzip();
        for (ids, files) in ids.chunks(BATCH).zip(files.chunks(BATCH)) {
            let (ids, files) = (ids.to_vec(), files.to_vec());
            let node = Arc::clone(&self.node);
            let check = async move {
                let states = node.seams.pod_files.log_states(files).await;
                let states = states.unwrap_or_else(|error| {
                    let path = node.config.pod_logs.display();
                    tracing::warn!(%path, %error, "sizes of container logs not read, will retry");
                    Vec::new()
                });
                LogWork::Checked(ids, states)
            };
            self.work.push(check.boxed());
        }
    }

    fn on_ended(&mut self, ended: LogWork) {
        let now = self.now();
        match ended {
            LogWork::Checked(ids, states) => {
                for (index, id) in ids.into_iter().enumerate() {
                    self.on_checked(id, states.get(index).copied(), now);
                }
            }
            LogWork::Done(id, done) => {
                let Some(log) = self.logs.get_mut(&id) else { return };
                log.is_busy = false;
                if done == LogAction::Rotate {
                    log.growth = log.growth.map(|growth| growth.rotated(now));
                }
                let wait = log.growth.map_or(self.policy.interval, |it| it.wait(&self.policy));
                // What failed is not tried faster than every log is checked.
                log.next_check =
                    now + if done == LogAction::Nothing { self.policy.interval } else { wait };
            }
        }
    }

    fn on_checked(&mut self, id: ContainerId, state: Option<LogFileState>, now: Mono) {
        let (policy, rotator) = (&self.policy, &self.rotator);
        let Some(log) = self.logs.get_mut(&id) else { return };
        let action = state.map_or(LogAction::Nothing, |state| state.action(policy));
        if let Some(size) = state.map(LogFileState::size) {
            let first = || LogGrowth::first(policy, size, now);
            log.growth = Some(log.growth.map_or_else(first, |before| before.checked(size, now)));
        }
        let wait = log.growth.map_or(policy.interval, |growth| growth.wait(policy));
        log.next_check = now + wait;
        log.is_busy = action != LogAction::Nothing;
        let (rotator, file) = (rotator.clone(), log.file.clone());
        let work = match action {
            LogAction::Nothing => return,
            LogAction::Reopen => rotator.reopen(id, file).boxed(),
            LogAction::Rotate => rotator.rotate(id, file).boxed(),
        };
        self.work.push(work.map(|(id, done)| LogWork::Done(id, done)).boxed());
    }

    fn until_next(&self, now: Mono) -> Duration {
        let checks = self.logs.values().filter(|log| !log.is_busy).map(|log| log.next_check);
        checks.min().map_or(self.next_scan, |check| check.min(self.next_scan)).since(now)
    }

    fn now(&self) -> Mono {
        self.node.seams.clock.mono()
    }
}
