//! Runs the steps of a script in a real process.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use oarsman_script::{NumberedLines, ScriptStep, filler};
use rustix::process::{getgid, getuid};

use crate::signals::TermHandler;
use crate::{grpc_server, http_server};

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("{step:?}: {source}")]
pub(crate) struct FailedStep {
    step: ScriptStep,
    source: io::Error,
}

/// How often a file that is waited for is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Does the steps in order, up to the first one that fails.
pub(crate) fn run_all(steps: &[ScriptStep], on_term: &TermHandler) -> Result<(), FailedStep> {
    for step in steps {
        run_step(step, on_term).map_err(|source| FailedStep { step: step.clone(), source })?;
    }
    Ok(())
}

fn run_step(step: &ScriptStep, on_term: &TermHandler) -> io::Result<()> {
    match step {
        ScriptStep::Out(text) => print(format!("{text}\n").as_bytes()),
        ScriptStep::Err(text) => io::stderr().write_all(format!("{text}\n").as_bytes()),
        ScriptStep::Raw(text) => print(text.as_bytes()),
        ScriptStep::Fill(bytes) => filler(*bytes).try_for_each(print),
        ScriptStep::Numbers { per_second, time } => {
            print_paced(NumberedLines::new(*per_second, *time))
        }
        ScriptStep::Cat(path) => print(&fs::read(path)?),
        ScriptStep::Env(name) => print(format!("{}\n", variable(name)?).as_bytes()),
        ScriptStep::Id => {
            print(format!("{}:{}\n", getuid().as_raw(), getgid().as_raw()).as_bytes())
        }
        ScriptStep::Pwd => print(format!("{}\n", std::env::current_dir()?.display()).as_bytes()),
        ScriptStep::Write { path, text } => fs::write(path, text),
        ScriptStep::Touch(path) => File::options().create(true).append(true).open(path).map(drop),
        ScriptStep::WaitFile(path) => wait_for(path),
        ScriptStep::Sleep(time) => {
            rest(*time);
            Ok(())
        }
        ScriptStep::Forever => loop {
            thread::park();
        },
        ScriptStep::Alloc(bytes) => take_memory(*bytes),
        ScriptStep::Child(time) => start_child(*time),
        ScriptStep::Listen(port) => listen(*port, http_server::answer),
        ScriptStep::Grpc(port) => listen(*port, grpc_server::answer),
        ScriptStep::OnTerm(steps) => {
            on_term.set(steps.clone());
            Ok(())
        }
        ScriptStep::Exit(code) => leave(*code),
    }
}

/// Ends the program, from any thread.
#[expect(clippy::exit, reason = "a script ends where it says so, also from the signal thread")]
pub(crate) fn leave(code: u8) -> ! {
    std::process::exit(i32::from(code))
}

pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// A tick that came late is made up for.
#[expect(clippy::disallowed_methods, reason = "the actor is what tests wait for: its time is real")]
fn print_paced(lines: NumberedLines) -> io::Result<()> {
    let mut due = Instant::now();
    for tick in lines {
        print(&tick)?;
        due += NumberedLines::TICK;
        rest(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

fn variable(name: &str) -> io::Result<String> {
    std::env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}

#[expect(clippy::disallowed_methods, reason = "the actor is what tests wait for: its time is real")]
fn rest(time: Duration) {
    thread::sleep(time);
}

fn wait_for(path: &Path) -> io::Result<()> {
    while !path.try_exists()? {
        rest(POLL_INTERVAL);
    }
    Ok(())
}

/// Writes ones, because the kernel need not allocate a page of zeros.
fn take_memory(bytes: u64) -> io::Result<()> {
    let length = usize::try_from(bytes).map_err(io::Error::other)?;
    std::hint::black_box(vec![1_u8; length].leak());
    Ok(())
}

/// The child is this program again, with a script of one step. A thread waits for it, so that it
/// does not stay a zombie where we are process 1.
fn start_child(time: Duration) -> io::Result<()> {
    let script = format!("sleep:{}ms", time.as_millis());
    let mut child = Command::new("/proc/self/exe").arg(script).spawn()?;
    thread::spawn(move || child.wait());
    Ok(())
}

/// Listens on IPv6 and, by the kernel's default, on IPv4 as well; on IPv4 alone where there is no
/// other. Every connection has a thread.
fn listen(port: u16, answer: fn(TcpStream) -> io::Result<()>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind(("0.0.0.0", port)))?;
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || answer(connection));
        }
    });
    Ok(())
}
