//! Notices the ends of containers and of shims, and tells subscribers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use oarsman_cri_types::v1::{ContainerEventResponse, ContainerEventType};
use oarsman_shim::client::{ContainerExits, clean_dead_shim};
use oarsman_shim::protocol::{ContainerReport, ExitReport};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{Outcome, failed};
use crate::inner::{RuntimeInner, nanoseconds};
use crate::records::{SandboxPhase, StoredExit};

/// How often the containers of a killed shim are ended again when that has failed.
const MOST_TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(250);

impl RuntimeInner {
    /// Reads the exits of a sandbox's containers from now on.
    pub(crate) async fn monitor(self: &Arc<Self>, sandbox: &str) -> Outcome<()> {
        let exits = self.shim(sandbox).exits().await?;
        let task = tokio::spawn(read_exits(Arc::downgrade(self), sandbox.to_owned(), exits));
        let task = AbortOnDropHandle::new(task);
        if let Some(entry) = self.state.lock().sandboxes.get_mut(sandbox) {
            entry.monitor = Some(task);
        }
        Ok(())
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

    /// Ends what a killed shim has left, and says that its sandbox is not ready.
    pub(crate) async fn shim_lost(self: &Arc<Self>, sandbox: &str) {
        let mut tries = 0;
        while let Err(error) = self.end_lost_containers(sandbox).await {
            if tries == MOST_TRIES {
                tracing::warn!(sandbox, %error, "containers of a killed shim not ended");
                break;
            }
            // A helper that it was just starting may hold its lock for a moment more.
            tries += 1;
            sleep(BETWEEN_TRIES).await;
        }
        let _alone = match self.sandbox(sandbox) {
            Ok((_, lock)) => lock.write_owned().await,
            Err(_) => return,
        };
        // Network and mounts stay until the sandbox is stopped.
        if self.set_phase(sandbox, SandboxPhase::Lost).is_some() {
            self.emit(sandbox, sandbox, ContainerEventType::ContainerStoppedEvent);
        }
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

async fn read_exits(inner: Weak<RuntimeInner>, sandbox: String, mut exits: ContainerExits) {
    loop {
        let next = exits.next().await;
        let Some(inner) = inner.upgrade() else { return };
        match next {
            Ok((container, exit)) => inner.container_ended(&container, &exit).await,
            Err(error) => {
                tracing::warn!(sandbox, %error, "shim lost");
                return inner.shim_lost(&sandbox).await;
            }
        }
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
