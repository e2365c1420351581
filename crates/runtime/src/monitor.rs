//! Notices the ends of containers and of shims, and tells subscribers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use oarsman_cri_types::v1::{ContainerEventResponse, ContainerEventType};
use oarsman_shim::client::{ContainerExits, clean_dead_shim, is_shim_alive};
use oarsman_shim::protocol::{ContainerReport, ExitReport};
use oarsman_sync::{TaskName, restarted};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{Outcome, failed};
use crate::inner::{RuntimeInner, nanoseconds};
use crate::records::{SandboxPhase, StoredExit};

/// How often the containers of a killed shim are ended again when that has failed.
const MOST_TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(250);
/// How long a shim has when this process looks for it, and the wait before it looks again for one that has not answered.
pub(crate) const RECONNECT_DEADLINE: Duration = Duration::from_secs(5);
const BETWEEN_RECONNECTS: Duration = Duration::from_secs(5);

impl RuntimeInner {
    /// Reads the exits of a sandbox's containers from now on; without a connection it makes one, for as long as it takes.
    pub(crate) fn monitor(self: &Arc<Self>, sandbox: &str, exits: Option<ContainerExits>) {
        let (inner, name) = (Arc::downgrade(self), sandbox.to_owned());
        // After a panic it connects anew.
        let mut exits = exits;
        let panics = self.settings.panics.clone();
        let task = restarted(TaskName::SandboxMonitor, panics, move || {
            read_exits(Weak::clone(&inner), name.clone(), exits.take())
        });
        let task = AbortOnDropHandle::new(tokio::spawn(task));
        if let Some(entry) = self.state.lock().sandboxes.get_mut(sandbox) {
            entry.monitor = Some(task);
        }
    }

    /// Subscribes to the exits of a sandbox's containers, and takes over what they are now.
    pub(crate) async fn find_exits(self: &Arc<Self>, sandbox: &str) -> Outcome<ContainerExits> {
        let shim = self.shim_within(sandbox, RECONNECT_DEADLINE);
        // Subscribed before the list is read: an exit in between comes twice, and counts once.
        let exits = shim.exits().await?;
        self.apply_reports(&shim.list().await?).await;
        Ok(exits)
    }

    /// A container has ended.
    pub(crate) async fn container_ended(self: &Arc<Self>, id: &str, exit: &ExitReport) {
        let exit = stored_exit(exit);
        let told = {
            let mut state = self.state.lock();
            let Some(entry) = state.containers.get_mut(id) else { return };
            if entry.record.exit.is_some() {
                return;
            }
            entry.record.exit = Some(exit);
            entry.is_start_told.then(|| entry.record.sandbox.clone())
        };
        let key = id.to_owned();
        if let Err(error) = self.on_files(id, move |inner| inner.save_container(&key)).await {
            tracing::warn!(object = id, %error, "end of container not written down");
        }
        if let Some(entry) = self.state.lock().containers.get(id) {
            entry.ended.send_replace(true);
        }
        if let Some(sandbox) = told {
            self.emit(&sandbox, id, ContainerEventType::ContainerStoppedEvent);
        }
    }

    /// Ends what a killed shim has left, and says that its sandbox is not ready. A shim that lives, and only does not answer, is left alone; whether it
    /// was lost.
    pub(crate) async fn shim_lost(self: &Arc<Self>, sandbox: &str) -> bool {
        let mut tries = 0;
        while let Err(error) = self.end_lost_containers(sandbox).await {
            if tries == MOST_TRIES {
                tracing::warn!(sandbox, %error, "containers of a killed shim not ended");
                if self.shim_lives(sandbox).await {
                    return false;
                }
                break;
            }
            // A helper that it was just starting may hold its lock for a moment more.
            tries += 1;
            sleep(BETWEEN_TRIES).await;
        }
        let _alone = match self.sandbox(sandbox) {
            Ok((_, lock)) => lock.write_owned().await,
            Err(_) => return true,
        };
        // Network and mounts stay until the sandbox is stopped.
        if self.set_phase(sandbox, SandboxPhase::Lost).is_some() {
            self.emit(sandbox, sandbox, ContainerEventType::ContainerStoppedEvent);
        }
        true
    }

    async fn shim_lives(self: &Arc<Self>, sandbox: &str) -> bool {
        let key = sandbox.to_owned();
        let looked =
            self.on_files(sandbox, move |inner| Ok(is_shim_alive(&inner.directory.shim(&key))));
        // What cannot be told is not taken for dead: that would end containers that run.
        looked.await.unwrap_or(true)
    }

    async fn end_lost_containers(self: &Arc<Self>, sandbox: &str) -> Outcome<()> {
        let reports = self.clean_lost_shim(sandbox).await?;
        self.apply_reports(&reports).await;
        Ok(())
    }

    /// What a shim that is gone knew of its containers, none of which runs any more.
    pub(crate) async fn clean_lost_shim(
        self: &Arc<Self>,
        sandbox: &str,
    ) -> Outcome<Vec<ContainerReport>> {
        let key = sandbox.to_owned();
        self.on_files(sandbox, move |inner| {
            let directory = inner.directory.shim(&key);
            if !directory.path().exists() {
                return Ok(Vec::new());
            }
            let cleaned = clean_dead_shim(&directory, inner.clock.wall());
            cleaned.map_err(failed("clean the shim's directory", directory.path()))
        })
        .await
    }

    /// Takes over what a shim says of its containers.
    pub(crate) async fn apply_reports(self: &Arc<Self>, reports: &[ContainerReport]) {
        for report in reports {
            if let (Some(entry), Some(started)) =
                (self.state.lock().containers.get_mut(&report.container), report.started_at)
            {
                entry.record.started_at.get_or_insert(nanoseconds(started));
                entry.is_start_told = true;
            }
            if let Some(exit) = &report.exit {
                self.container_ended(&report.container, exit).await;
            }
        }
    }

    /// Tells all subscribers about a container or a sandbox, with the state of its pod.
    pub(crate) fn emit(&self, sandbox: &str, id: &str, kind: ContainerEventType) {
        if self.events.receiver_count() == 0 {
            return;
        }
        let event = ContainerEventResponse {
            container_id: id.to_owned(),
            container_event_type: kind.into(),
            created_at: self.now(),
            pod_sandbox_status: self.sandbox_status(sandbox).ok(),
            containers_statuses: self.statuses_of(sandbox),
        };
        // The last subscriber may just have gone.
        self.events.send(event).ok();
    }
}

async fn read_exits(inner: Weak<RuntimeInner>, sandbox: String, mut exits: Option<ContainerExits>) {
    loop {
        let next = match &mut exits {
            Some(exits) => Some(exits.next().await),
            None => None,
        };
        let Some(inner) = inner.upgrade() else { return };
        let error = match next {
            Some(Ok((container, exit))) => {
                inner.container_ended(&container, &exit).await;
                continue;
            }
            Some(Err(error)) => error.into(),
            None => match inner.find_exits(&sandbox).await {
                Ok(found) => {
                    tracing::info!(sandbox, "shim answers again");
                    exits = Some(found);
                    continue;
                }
                Err(error) => error,
            },
        };
        exits = None;
        if error.is_shim_gone() {
            tracing::warn!(sandbox, %error, "shim lost");
            if inner.shim_lost(&sandbox).await {
                return;
            }
        } else {
            tracing::warn!(sandbox, %error, "shim does not answer, will retry");
        }
        drop(inner);
        sleep(BETWEEN_RECONNECTS).await;
    }
}

pub(crate) fn stored_exit(exit: &ExitReport) -> StoredExit {
    let reason = match exit {
        ExitReport { unknown: true, .. } => "ContainerStatusUnknown",
        ExitReport { oom_killed: true, .. } => "OOMKilled",
        ExitReport { exit_code: 0, .. } => "Completed",
        _ => "Error",
    };
    let message = if exit.unknown { "the shim of the container was killed" } else { "" };
    StoredExit {
        code: exit.exit_code,
        reason: reason.to_owned(),
        message: message.to_owned(),
        finished_at: nanoseconds(exit.finished_at),
    }
}
