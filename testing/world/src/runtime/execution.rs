//! Runs containers: scripts, interpreted in virtual time.

mod script_runner;

use std::io;

use oarsman_cri::{CriError, ErrorCode, Result};
use oarsman_cri_types::v1::ContainerState;
use tokio::sync::mpsc;

use super::FakeRuntime;
use super::logs::OutputStream;
use super::program::ContainerProgram;
use super::state::FakeRuntimeState;
pub(super) use script_runner::{ProgramEnd, ProgramOutput, ScriptRunner};

impl FakeRuntime {
    /// Starts a container's program as a task of its own.
    pub(super) fn start(&self, id: &str) -> Result<()> {
        const CALL: &str = "StartContainer";
        let mut state = self.serve(CALL)?;
        let container = state.container(CALL, id)?;
        container.expect(CALL, ContainerState::ContainerCreated)?;
        if let Some(obstacle) = state.start_error(container) {
            state.fail_start(id, obstacle.clone());
            return Err(CriError::new(CALL, ErrorCode::Unknown, obstacle).on(id));
        }
        let (signals, inbox) = mpsc::channel(1);
        let program = container.program.clone();
        let program_run = run_program(self.clone(), id.to_owned(), program, inbox);
        let task = self.0.executor.spawn(program_run).abort_handle();
        state.begin(id, signals, task);
        Ok(())
    }
}

async fn run_program(
    runtime: FakeRuntime,
    id: String,
    program: ContainerProgram,
    signals: mpsc::Receiver<u8>,
) {
    let runner = ScriptRunner::new(runtime.clone(), id.clone(), program, ProgramOutput::Log);
    let (code, reason) = match runner.run(signals).await {
        ProgramEnd::Code(0) => (0, "Completed"),
        ProgramEnd::Code(code) => (i32::from(code), "Error"),
        ProgramEnd::OutOfMemory => (128 + 9, "OOMKilled"),
    };
    runtime.state().exit(&id, code, reason);
}

impl FakeRuntimeState {
    fn log(&mut self, id: &str, stream: OutputStream, bytes: &[u8]) {
        let running = self.containers.get_mut(id).and_then(|container| container.running_mut());
        if let Some(running) = running {
            running.log.write(stream, bytes, &self.clock);
        }
    }

    /// Allocates memory, if the container's limit allows it.
    fn take_memory(&mut self, id: &str, bytes: u64) -> bool {
        let Some(container) = self.containers.get_mut(id) else { return false };
        let limit = container.resources().map_or(0, |resources| resources.memory_limit_in_bytes);
        let limit = u64::try_from(limit).ok().filter(|limit| *limit > 0);
        let Some(running) = container.running_mut() else { return false };
        running.memory = running.memory.saturating_add(bytes);
        limit.is_none_or(|limit| running.memory <= limit)
    }

    /// Listens on a port of the pod.
    fn listen(&mut self, id: &str, port: u16) -> io::Result<()> {
        let address = self.containers.get(id).map(|container| self.address(&container.sandbox));
        if address.is_some_and(|ip| self.listens(&ip, port)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let running = self.containers.get_mut(id).and_then(|container| container.running_mut());
        running.map(|running| running.ports.insert(port));
        Ok(())
    }

    /// Whether a process listens on that port of the pod with that address.
    pub(super) fn listens(&self, ip: &str, port: u16) -> bool {
        let mut there = self.containers.values().filter(|one| self.address(&one.sandbox) == ip);
        there.any(|one| one.ports().is_some_and(|ports| ports.contains(&port)))
    }

    fn address(&self, sandbox: &str) -> String {
        self.sandboxes.get(sandbox).map(|sandbox| sandbox.ip.clone()).unwrap_or_default()
    }
}
