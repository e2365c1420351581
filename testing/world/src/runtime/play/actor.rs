//! A program that plays its script, step by step.

use std::future::pending;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use oarsman_actor::{EXIT_BAD_SCRIPT, EXIT_FAILED_STEP, Step, filler, parse};
use tokio::sync::mpsc;

use crate::lock;
use crate::runtime::FakeRuntime;
use crate::runtime::logs::Stream;
use crate::runtime::program::Program;

/// SIGTERM, which scripts may react to.
const TERM: u8 = 15;
/// The signals that end the actor, as its page says; it does not hear others.
const ENDING: [u8; 7] = [1, 2, 3, 9, 10, 12, TERM];

/// How a program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runtime) enum Ending {
    /// With that exit code.
    Code(u8),
    /// Killed, because it took more memory than its container may.
    OutOfMemory,
}

/// Where a program's output goes.
pub(in crate::runtime) enum Output {
    /// To the container's log.
    Log,
    /// To whoever asked for the command: stdout, then stderr.
    Kept(Mutex<(Vec<u8>, Vec<u8>)>),
}

/// A program that plays its script in a container.
pub(in crate::runtime) struct Actor {
    runtime: FakeRuntime,
    container: String,
    program: Program,
    pub(in crate::runtime) output: Output,
    /// What SIGTERM does at this moment, if not what it does to everybody.
    on_term: Mutex<Option<Vec<Step>>>,
}

impl Actor {
    pub(in crate::runtime) fn new(
        runtime: FakeRuntime,
        container: String,
        program: Program,
        output: Output,
    ) -> Self {
        Self { runtime, container, program, output, on_term: Mutex::default() }
    }

    /// Plays the script to its end. Signals are handled beside it, as on the actor's own thread.
    pub(in crate::runtime) async fn run(&self, signals: mpsc::Receiver<u8>) -> Ending {
        let steps = match parse(self.program.arguments()) {
            Ok(steps) => steps,
            Err(error) => return self.complain(&error.to_string(), EXIT_BAD_SCRIPT),
        };
        tokio::select! {
            biased;
            done = self.perform_all(&steps) => done.err().unwrap_or(Ending::Code(0)),
            ending = self.heed(signals) => ending,
        }
    }

    async fn heed(&self, mut signals: mpsc::Receiver<u8>) -> Ending {
        while let Some(signal) = signals.recv().await {
            let reaction = lock(&self.on_term).clone().filter(|_| signal == TERM);
            match reaction {
                Some(steps) => {
                    if let Err(ending) = self.perform_all(&steps).await {
                        return ending;
                    }
                }
                None if ENDING.contains(&signal) => return Ending::Code(128 + signal),
                None => {}
            }
        }
        pending().await
    }

    async fn perform_all(&self, steps: &[Step]) -> Result<(), Ending> {
        for step in steps {
            self.perform(step).await?;
        }
        Ok(())
    }

    async fn perform(&self, step: &Step) -> Result<(), Ending> {
        match step {
            Step::WaitFile(path) => {
                let files = self.runtime.state().files.clone();
                files.until_exists(&self.program.place(path).path).await;
            }
            Step::Sleep(time) => tokio::time::sleep(*time).await,
            Step::Forever => pending().await,
            Step::Alloc(bytes) => {
                if !self.runtime.state().take_memory(&self.container, *bytes) {
                    return Err(Ending::OutOfMemory);
                }
            }
            Step::OnTerm(steps) => *lock(&self.on_term) = Some(steps.clone()),
            Step::Exit(code) => return Err(Ending::Code(*code)),
            other => self
                .perform_at_once(other)
                .map_err(|error| self.complain(&format!("{other:?}: {error}"), EXIT_FAILED_STEP))?,
        }
        Ok(())
    }

    /// The steps that take no time and may fail.
    fn perform_at_once(&self, step: &Step) -> io::Result<()> {
        match step {
            Step::Out(text) => self.print(format!("{text}\n").as_bytes()),
            Step::Err(text) => self.write(Stream::Stderr, format!("{text}\n").as_bytes()),
            Step::Raw(text) => self.print(text.as_bytes()),
            Step::Fill(bytes) => filler(*bytes).for_each(|piece| self.print(piece)),
            Step::Cat(path) => self.print(&self.read(path)?),
            Step::Env(name) => {
                let missing = || io::Error::other(format!("{name}: not set"));
                let value = self.program.variable(name).ok_or_else(missing)?;
                self.print(format!("{value}\n").as_bytes());
            }
            Step::Id => {
                let (uid, gid) = (self.program.uid(), self.program.gid());
                self.print(format!("{uid}:{gid}\n").as_bytes());
            }
            Step::Pwd => {
                self.print(format!("{}\n", self.program.directory().display()).as_bytes());
            }
            Step::Write { path, text } => self.change(path, Some(text))?,
            Step::Touch(path) => self.change(path, None)?,
            Step::Listen(port) => self.runtime.state().listen(&self.container, *port)?,
            // A child ends with its container at the latest, and nothing can see it before.
            _ => {}
        }
        Ok(())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.runtime.state().files.read(&self.program.place(path).path)
    }

    /// Makes a file, with that text or with what it has.
    fn change(&self, path: &Path, text: Option<&str>) -> io::Result<()> {
        let place = self.program.place(path);
        if place.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let state = self.runtime.state();
        match text {
            Some(text) => state.files.write(&place.path, text.as_bytes()),
            None => state.files.open(&place.path).map(drop),
        }
    }

    fn print(&self, bytes: &[u8]) {
        self.write(Stream::Stdout, bytes);
    }

    fn write(&self, stream: Stream, bytes: &[u8]) {
        match (&self.output, stream) {
            (Output::Log, _) => self.runtime.state().log(&self.container, stream, bytes),
            (Output::Kept(kept), Stream::Stdout) => lock(kept).0.extend_from_slice(bytes),
            (Output::Kept(kept), Stream::Stderr) => lock(kept).1.extend_from_slice(bytes),
        }
    }

    fn complain(&self, why: &str, code: u8) -> Ending {
        self.write(Stream::Stderr, format!("actor: {why}\n").as_bytes());
        Ending::Code(code)
    }
}
