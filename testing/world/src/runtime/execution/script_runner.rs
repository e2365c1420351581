//! Interprets a script step by step, in virtual time.

use std::future::pending;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use oarsman_script::{EXIT_BAD_SCRIPT, EXIT_FAILED_STEP, NumberedLines, ScriptStep, filler, parse};
use tokio::sync::mpsc;

use crate::lock;
use crate::runtime::FakeRuntime;
use crate::runtime::logs::OutputStream;
use crate::runtime::program::ContainerProgram;

/// SIGTERM, which scripts may react to.
const TERM: u8 = 15;
/// The signals that end the script program, as its documentation says; it ignores others.
const ENDING: [u8; 7] = [1, 2, 3, 9, 10, 12, TERM];

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runtime) enum ProgramEnd {
    /// It exited with that code.
    Code(u8),
    /// It was killed, because it exceeded its container's memory limit.
    OutOfMemory,
}

/// Where a program's output goes.
pub(in crate::runtime) enum ProgramOutput {
    /// To the container's log.
    Log,
    /// To the caller of the command: stdout, then stderr.
    Kept(Mutex<(Vec<u8>, Vec<u8>)>),
}

/// A program that runs its script in a container.
pub(in crate::runtime) struct ScriptRunner {
    runtime: FakeRuntime,
    container: String,
    program: ContainerProgram,
    pub(in crate::runtime) output: ProgramOutput,
    /// The script's current handler of SIGTERM; none for the default.
    on_term: Mutex<Option<Vec<ScriptStep>>>,
}

impl ScriptRunner {
    pub(in crate::runtime) fn new(
        runtime: FakeRuntime,
        container: String,
        program: ContainerProgram,
        output: ProgramOutput,
    ) -> Self {
        Self { runtime, container, program, output, on_term: Mutex::default() }
    }

    /// Runs the script to its end. Signals are handled concurrently, as on the program's own thread.
    pub(in crate::runtime) async fn run(&self, signals: mpsc::Receiver<u8>) -> ProgramEnd {
        let steps = match parse(self.program.arguments()) {
            Ok(steps) => steps,
            Err(error) => return self.fail(&error.to_string(), EXIT_BAD_SCRIPT),
        };
        tokio::select! {
            biased;
            done = self.run_steps(&steps) => done.err().unwrap_or(ProgramEnd::Code(0)),
            ending = self.handle_signals(signals) => ending,
        }
    }

    async fn handle_signals(&self, mut signals: mpsc::Receiver<u8>) -> ProgramEnd {
        while let Some(signal) = signals.recv().await {
            let reaction = lock(&self.on_term).clone().filter(|_| signal == TERM);
            match reaction {
                Some(steps) => {
                    if let Err(ending) = self.run_steps(&steps).await {
                        return ending;
                    }
                }
                None if ENDING.contains(&signal) => return ProgramEnd::Code(128 + signal),
                None => {}
            }
        }
        pending().await
    }

    async fn run_steps(&self, steps: &[ScriptStep]) -> Result<(), ProgramEnd> {
        for step in steps {
            self.run_step(step).await?;
        }
        Ok(())
    }

    async fn run_step(&self, step: &ScriptStep) -> Result<(), ProgramEnd> {
        match step {
            ScriptStep::WaitFile(path) => {
                let files = self.runtime.state().files.clone();
                files.until_exists(&self.program.resolve(path).path).await;
            }
            ScriptStep::Sleep(time) => tokio::time::sleep(*time).await,
            ScriptStep::Numbers { per_second, time } => {
                for tick in NumberedLines::new(*per_second, *time) {
                    self.print(&tick);
                    tokio::time::sleep(NumberedLines::TICK).await;
                }
            }
            ScriptStep::Forever => pending().await,
            ScriptStep::Alloc(bytes) => {
                if !self.runtime.state().take_memory(&self.container, *bytes) {
                    return Err(ProgramEnd::OutOfMemory);
                }
            }
            ScriptStep::OnTerm(steps) => *lock(&self.on_term) = Some(steps.clone()),
            ScriptStep::Exit(code) => return Err(ProgramEnd::Code(*code)),
            other => self
                .run_step_at_once(other)
                .map_err(|error| self.fail(&format!("{other:?}: {error}"), EXIT_FAILED_STEP))?,
        }
        Ok(())
    }

    /// The steps that take no time and may fail.
    fn run_step_at_once(&self, step: &ScriptStep) -> io::Result<()> {
        match step {
            ScriptStep::Out(text) => self.print(format!("{text}\n").as_bytes()),
            ScriptStep::Err(text) => {
                self.write(OutputStream::Stderr, format!("{text}\n").as_bytes());
            }
            ScriptStep::Raw(text) => self.print(text.as_bytes()),
            ScriptStep::Fill(bytes) => filler(*bytes).for_each(|piece| self.print(piece)),
            ScriptStep::Cat(path) => self.print(&self.read(path)?),
            ScriptStep::Env(name) => {
                let missing = || io::Error::other(format!("{name}: not set"));
                let value = self.program.variable(name).ok_or_else(missing)?;
                self.print(format!("{value}\n").as_bytes());
            }
            ScriptStep::Id => {
                let (uid, gid) = (self.program.uid(), self.program.gid());
                self.print(format!("{uid}:{gid}\n").as_bytes());
            }
            ScriptStep::Pwd => {
                self.print(format!("{}\n", self.program.directory().display()).as_bytes());
            }
            ScriptStep::Write { path, text } => self.change(path, Some(text))?,
            ScriptStep::Touch(path) => self.change(path, None)?,
            ScriptStep::Listen(port) | ScriptStep::Grpc(port) => {
                self.runtime.state().listen(&self.container, *port)?;
            }
            // A child ends with its container at the latest, and has no other effect.
            _ => {}
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.runtime.state().files.read(&self.program.resolve(path).path)
    }

    /// Creates a file, with that text or its old content.
    fn change(&self, path: &Path, text: Option<&str>) -> io::Result<()> {
        let resolved = self.program.resolve(path);
        if resolved.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let state = self.runtime.state();
        match text {
            Some(text) => state.files.write(&resolved.path, text.as_bytes()),
            None => state.files.open(&resolved.path).map(drop),
        }
    }

    fn print(&self, bytes: &[u8]) {
        self.write(OutputStream::Stdout, bytes);
    }

    fn write(&self, stream: OutputStream, bytes: &[u8]) {
        match (&self.output, stream) {
            (ProgramOutput::Log, _) => self.runtime.state().log(&self.container, stream, bytes),
            (ProgramOutput::Kept(kept), OutputStream::Stdout) => {
                lock(kept).0.extend_from_slice(bytes);
            }
            (ProgramOutput::Kept(kept), OutputStream::Stderr) => {
                lock(kept).1.extend_from_slice(bytes);
            }
        }
    }

    fn fail(&self, why: &str, code: u8) -> ProgramEnd {
        self.write(OutputStream::Stderr, format!("script: {why}\n").as_bytes());
        ProgramEnd::Code(code)
    }
}
