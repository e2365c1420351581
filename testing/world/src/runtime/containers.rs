//! Containers of the fake runtime: created, started, ended, removed.

mod resources;
mod status;

use std::collections::BTreeSet;

use oarsman_cri::{CriError, ErrorCode, Result};
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerEventType, ContainerMetadata, ContainerState, CreateContainerRequest,
    PodSandboxMetadata,
};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::images::StoredImage;
use super::logs::LogWriter;
use super::names;
use super::program::ContainerProgram;
use super::sandboxes::missing_field;
use super::state::FakeRuntimeState;
use super::user_namespaces;
use crate::trace::{ContainerTransition, TraceEntry, TracedContainer};

/// Exit code of a program that cannot be started.
const NOT_STARTED: i32 = 128;
/// Exit code of a killed program.
const KILLED: i32 = 128 + 9;
/// Exit code of a container that the runtime lost track of.
const LOST: i32 = 255;

pub(super) struct FakeContainer {
    pub(super) id: String,
    pub(super) sandbox: String,
    pod: PodSandboxMetadata,
    metadata: ContainerMetadata,
    pub(super) config: ContainerConfig,
    image: StoredImage,
    pub(super) program: ContainerProgram,
    /// Absolute; empty when it has no log.
    log_path: String,
    created_at: i64,
    pub(super) run_state: ContainerRunState,
    /// The runtime was restarted and has lost track of it.
    pub(super) lost: bool,
    ended: watch::Sender<bool>,
}

/// The state of a container.
pub(super) enum ContainerRunState {
    Created,
    Running(RunningProcess),
    Exited(ProcessExit),
}

/// The process of a running container.
pub(super) struct RunningProcess {
    pub(super) started_at: i64,
    pub(super) log: LogWriter,
    signals: mpsc::Sender<u8>,
    task: AbortHandle,
    /// The stop signal is sent once, however often a stop is called.
    asked_to_stop: bool,
    pub(super) memory: u64,
    pub(super) ports: BTreeSet<u16>,
}

/// The end of a container.
pub(super) struct ProcessExit {
    started_at: i64,
    finished_at: i64,
    code: i32,
    reason: &'static str,
    message: String,
}

impl FakeRuntimeState {
    /// Makes a container.
    pub(super) fn create_container(&mut self, request: CreateContainerRequest) -> Result<String> {
        const CALL: &str = "CreateContainer";
        let id = self.next_id();
        let container = self.plan_container(CALL, id.clone(), request)?;
        self.names.take(CALL, &container.reserved_name(), &id, self.clock.elapsed())?;
        self.containers.insert(id.clone(), container);
        self.trace_change(&id, ContainerTransition::Created);
        self.send_event(&id, ContainerEventType::ContainerCreatedEvent);
        Ok(id)
    }

    fn plan_container(
        &self,
        call: &'static str,
        id: String,
        request: CreateContainerRequest,
    ) -> Result<FakeContainer> {
        let sandbox = self.ready_sandbox(call, &request.pod_sandbox_id)?;
        let config = request.config.unwrap_or_default();
        user_namespaces::check_container(call, sandbox, &config)?;
        let metadata =
            config.metadata.clone().ok_or_else(|| missing_field(call, "config.metadata"))?;
        let asked = config.image.clone().unwrap_or_default().image;
        let image = self.images.find(&asked).ok_or_else(|| CriError::not_found(call, &asked))?;
        let log_path = match config.log_path.as_str() {
            "" => String::new(),
            file => format!("{}/{file}", sandbox.config.log_directory),
        };
        Ok(FakeContainer {
            program: ContainerProgram::new(&id, &config, &image.source),
            id,
            sandbox: request.pod_sandbox_id,
            pod: sandbox.metadata.clone(),
            metadata,
            config,
            image: image.clone(),
            log_path,
            created_at: self.clock.stamp(),
            run_state: ContainerRunState::Created,
            lost: false,
            ended: watch::channel(false).0,
        })
    }

    /// Records that a container's process runs from now on as that task.
    pub(super) fn begin(&mut self, id: &str, signals: mpsc::Sender<u8>, task: AbortHandle) {
        let Some(container) = self.containers.get_mut(id) else { return };
        container.run_state = ContainerRunState::Running(RunningProcess {
            started_at: self.clock.stamp(),
            log: LogWriter::open(&self.files, &container.log_path),
            signals,
            task,
            asked_to_stop: false,
            memory: 0,
            ports: BTreeSet::new(),
        });
        self.trace_change(id, ContainerTransition::Started);
        self.send_event(id, ContainerEventType::ContainerStartedEvent);
    }

    /// Why a container cannot be started though it is in the right state, if so.
    pub(super) fn start_error(&self, container: &FakeContainer) -> Option<String> {
        if self.ready_sandbox("StartContainer", &container.sandbox).is_err() {
            return Some("the sandbox does not run".to_owned());
        }
        let program = container.program.name();
        (!container.program.exists()).then(|| format!("exec {program:?}: no such file"))
    }

    /// Records that a container could not be started. There is no event, as in containerd.
    pub(super) fn fail_start(&mut self, id: &str, message: String) {
        self.finish(id, NOT_STARTED, "StartError", message);
    }

    /// Records that a container's process ended by itself.
    pub(super) fn exit(&mut self, id: &str, code: i32, reason: &'static str) {
        if self.containers.get(id).is_some_and(FakeContainer::runs) {
            self.finish(id, code, reason, String::new());
            self.send_event(id, ContainerEventType::ContainerStoppedEvent);
        }
    }

    /// Sends the stop signal to a container, and returns a receiver of its end; none when there is nothing to stop.
    pub(super) fn ask_to_stop(&mut self, id: &str) -> Option<watch::Receiver<bool>> {
        let container = self.containers.get_mut(id)?;
        let signal = container.program.stop_signal();
        let ContainerRunState::Running(running) = &mut container.run_state else { return None };
        let ended = container.ended.subscribe();
        if !running.asked_to_stop {
            running.asked_to_stop = true;
            // A signal that is still to be handled stands for those after it.
            running.signals.try_send(signal).ok();
            self.trace_change(id, ContainerTransition::Signalled(signal));
        }
        Some(ended)
    }

    /// Kills a container, if it runs or its state is unknown.
    pub(super) fn kill(&mut self, id: &str) {
        let Some(container) = self.containers.get_mut(id) else { return };
        let lost = std::mem::take(&mut container.lost);
        let runs = container.runs();
        if runs {
            self.trace_change(id, ContainerTransition::Signalled(9));
        }
        match (lost, runs) {
            (true, _) => self.finish(id, LOST, "Unknown", String::new()),
            (false, true) => self.finish(id, KILLED, "Error", String::new()),
            (false, false) => return,
        }
        self.send_event(id, ContainerEventType::ContainerStoppedEvent);
    }

    /// Records the end of a container. One that ended while the runtime had lost track of it gets the runtime's exit code, but is traced only
    /// once.
    fn finish(&mut self, id: &str, code: i32, reason: &'static str, message: String) {
        let finished_at = self.clock.stamp();
        let Some(container) = self.containers.get_mut(id) else { return };
        let (started_at, ends_now) = match &mut container.run_state {
            ContainerRunState::Created => (0, true),
            ContainerRunState::Exited(exit) => (exit.started_at, false),
            ContainerRunState::Running(running) => {
                running.log.close(&self.clock);
                running.task.abort();
                (running.started_at, true)
            }
        };
        container.run_state = ContainerRunState::Exited(ProcessExit {
            started_at,
            finished_at,
            code,
            reason,
            message,
        });
        container.ended.send_replace(true);
        if ends_now {
            self.trace_change(id, ContainerTransition::Exited { code, reason });
        }
    }

    /// Removes a container, killing it if it runs; not an error when there is none. Its log file stays.
    pub(super) fn remove_container(&mut self, id: &str) {
        self.kill(id);
        self.trace_change(id, ContainerTransition::Removed);
        let Some(container) = self.containers.remove(id) else { return };
        self.names.release(&container.reserved_name());
        self.files.remove(container.program.root());
        self.send_event_for(ContainerEventType::ContainerDeletedEvent, id, &container.sandbox);
    }

    pub(super) fn container(&self, call: &'static str, id: &str) -> Result<&FakeContainer> {
        self.containers.get(id).ok_or_else(|| CriError::not_found(call, id))
    }

    /// A container whose process runs, as far as the runtime knows.
    pub(super) fn running(&self, call: &'static str, id: &str) -> Result<&FakeContainer> {
        let container = self.container(call, id)?;
        container.expect(call, ContainerState::ContainerRunning)?;
        Ok(container)
    }

    pub(super) fn containers_of(&self, sandbox: &str) -> Vec<String> {
        let of_it = self.containers.values().filter(|container| container.sandbox == sandbox);
        of_it.map(|container| container.id.clone()).collect()
    }

    /// Adds a change to the trace.
    pub(super) fn trace_change(&self, id: &str, change: ContainerTransition) {
        if let Some(container) = self.containers.get(id) {
            self.trace.append(TraceEntry::Container { target: container.name(), change });
        }
    }

    /// Sends an event of a container that the runtime still knows.
    fn send_event(&mut self, id: &str, kind: ContainerEventType) {
        let known = self.containers.get(id).filter(|container| !container.lost);
        if let Some(sandbox) = known.map(|container| container.sandbox.clone()) {
            self.send_event_for(kind, id, &sandbox);
        }
    }
}

impl FakeContainer {
    /// Whether it was made from that image and has not ended.
    pub(super) fn needs_image(&self, id: &str) -> bool {
        self.image.id == id && !matches!(self.run_state, ContainerRunState::Exited(_))
    }

    /// Whether its process runs, known to the runtime or not.
    pub(super) fn runs(&self) -> bool {
        matches!(self.run_state, ContainerRunState::Running(_))
    }

    /// Its process while it runs.
    pub(super) fn running_mut(&mut self) -> Option<&mut RunningProcess> {
        match &mut self.run_state {
            ContainerRunState::Running(running) => Some(running),
            ContainerRunState::Created | ContainerRunState::Exited(_) => None,
        }
    }

    /// The ports its processes listen on.
    pub(super) fn ports(&self) -> Option<&BTreeSet<u16>> {
        match &self.run_state {
            ContainerRunState::Running(running) => Some(&running.ports),
            ContainerRunState::Created | ContainerRunState::Exited(_) => None,
        }
    }

    /// Receives the end of its process.
    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Fails a call that needs another state.
    pub(super) fn expect(&self, call: &'static str, wanted: ContainerState) -> Result<()> {
        let state = self.state();
        if state == wanted {
            return Ok(());
        }
        let message = format!("the container is in state {}", state.as_str_name());
        Err(CriError::new(call, ErrorCode::Unknown, message).on(&self.id))
    }

    fn reserved_name(&self) -> String {
        names::of_container(&self.metadata, &self.pod)
    }

    fn name(&self) -> TracedContainer {
        TracedContainer {
            pod_uid: self.pod.uid.clone(),
            name: self.metadata.name.clone(),
            attempt: self.metadata.attempt,
            id: self.id.clone(),
        }
    }
}
