//! The README, typed into a terminal as a newcomer would: every command, in its order, with what comes of it.
//!
//! It runs in a network namespace of its own, on a machine without any runtime: the first command needs none.

mod console_blocks;
mod machine;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::program::workspace;
use oarsman_e2e::terminal::Terminal;

use machine::ReadmeMachine;

/// The first command builds the program.
const BUILDING: Duration = Duration::from_secs(45 * 60);
const MAX_WAIT: Duration = Duration::from_secs(120);

/// The terminals of the reader of README.md.
const FIRST: &str = "0";
const SECOND: &str = "second";
/// One in which commands are run on a machine whose usual directories are empty, and of which nothing is left.
const NODE: &str = "node";

/// A kubelet leaves its pods running when it ends: with its first process all others of a pid namespace end, too.
const EMPTY_MACHINE: &str = "unshare --mount --net --pid --fork --kill-child --mount-proc sh -c 'mount -t tmpfs none /var/lib && mount -t tmpfs none /var/log &&";

/// What is typed where, and what is seen then.
struct ReadmeStep {
    command: &'static str,
    window: &'static str,
    sees: &'static [&'static str],
    then: AfterStep,
    /// Whether what it tells may come later.
    asks_again: bool,
}

/// What a person does when they have seen it.
enum AfterStep {
    /// Wait until it has ended with this code.
    Ends(u8),
    /// Press Ctrl-C, and wait until it has ended with this code.
    Interrupts(u8),
    /// Let it run, and go to another terminal.
    GoesOn,
}

const STEPS: &[ReadmeStep] = &[
    ReadmeStep {
        command: "cargo run --release -- run examples/hello.yaml",
        window: FIRST,
        sees: &["hello | listening on port 8080", "hello: running at "],
        then: AfterStep::GoesOn,
        asks_again: false,
    },
    ReadmeStep {
        command: "export PATH=$PWD/target/release:$PATH",
        window: SECOND,
        sees: &[],
        then: AfterStep::Ends(0),
        asks_again: false,
    },
    ReadmeStep {
        command: "oarsman ps",
        window: SECOND,
        sees: &["NAME    READY   STATUS    RESTARTS", "hello   1/1     Running   0"],
        then: AfterStep::Ends(0),
        asks_again: false,
    },
    ReadmeStep {
        command: "oarsman logs -f hello",
        window: SECOND,
        sees: &["listening on port 8080\nGET / HTTP/1.1 from "],
        then: AfterStep::Interrupts(130),
        asks_again: false,
    },
    ReadmeStep {
        command: "oarsman run --detach examples/restart.yaml",
        window: SECOND,
        sees: &["in the background, process ", "oarsman stop --all"],
        then: AfterStep::Ends(0),
        asks_again: false,
    },
    ReadmeStep {
        command: "oarsman explain crash",
        window: SECOND,
        sees: &["ended with exit code 3", "Next: "],
        then: AfterStep::Ends(0),
        asks_again: true,
    },
    ReadmeStep {
        command: "oarsman events crash",
        window: SECOND,
        sees: &["REASON", "Started"],
        then: AfterStep::Ends(0),
        asks_again: true,
    },
    ReadmeStep {
        command: "oarsman describe crash",
        window: SECOND,
        sees: &["Exit Code:", "examples/restart.yaml", "Events:"],
        then: AfterStep::Ends(0),
        asks_again: true,
    },
    ReadmeStep {
        command: "oarsman stop --all",
        window: SECOND,
        sees: &["the agent has ended"],
        then: AfterStep::Ends(0),
        asks_again: false,
    },
    ReadmeStep {
        command: "oarsman run examples/config.yaml",
        window: SECOND,
        sees: &["good morning, rower", "/login/password has 8 letters", "the sea is calm"],
        then: AfterStep::Interrupts(0),
        asks_again: false,
    },
    ReadmeStep {
        command: "oarsman run examples/job.yaml; echo \"it ended with $?\"",
        window: SECOND,
        sees: &["job | one is missing", "it ended with 7"],
        then: AfterStep::Ends(0),
        asks_again: false,
    },
    ReadmeStep {
        command: "oarsman check examples/hello.yaml",
        window: SECOND,
        sees: &["examples/hello.yaml", "cgroups"],
        then: AfterStep::Ends(0),
        asks_again: false,
    },
    ReadmeStep {
        command: "oarsman kubelet --config examples/kubelet.yaml",
        window: NODE,
        sees: &["agent started", "Started"],
        then: AfterStep::Interrupts(0),
        asks_again: false,
    },
];

#[test]
fn every_command_of_the_readme_is_typed_here() {
    let page = std::fs::read_to_string(workspace().join("README.md")).unwrap();
    let typed: Vec<&str> = STEPS.iter().map(|step| step.command).collect();
    assert_eq!(console_blocks::commands(&page), [&typed[..], &["./test"]].concat());
}

#[tokio::test]
async fn the_commands_of_the_readme_work() {
    let place = ReadmeMachine::find().unwrap();
    let read = read(&place).await;
    if read.is_err() {
        ReadmeMachine::clear();
    }
    let left = place.leave();
    read.unwrap();
    left.unwrap();
}

async fn read(place: &ReadmeMachine) -> Result<()> {
    let variables = ReadmeMachine::variables();
    let terminal = Terminal::open_without_network(&place.socket(), workspace(), &variables).await?;
    terminal.window(SECOND, workspace()).await?;
    terminal.window(NODE, workspace()).await?;
    terminal.type_line(NODE, "export PATH=$PWD/target/release:$PATH")?;
    for step in STEPS {
        if step.command.starts_with("oarsman run --detach") {
            // As it says before: Ctrl-C ends each of them.
            interrupt(&terminal, FIRST, 0).await?;
        }
        let done = follow(&terminal, step).await;
        done.with_context(|| format!("at the command `{}`", step.command))?;
        if step.command.starts_with("cargo") {
            ask_server(&terminal).await.context("the page says that curl gets an answer")?;
        }
    }
    Ok(())
}

/// Asks the web server of the first pod at the address that was printed, as a reader does with curl, which may not be installed.
async fn ask_server(terminal: &Terminal) -> Result<()> {
    let screen = terminal.screen(FIRST)?;
    let said = screen.split("hello: running at ").nth(1).context("no address was printed")?;
    let address = said.split_whitespace().next().and_then(|address| address.split_once(':'));
    let (host, port) = address.with_context(|| format!("no port was printed: {said}"))?;
    let request = "GET / HTTP/1.1\\r\\n\\r\\n";
    terminal.type_line(
        NODE,
        &format!("exec 3<>/dev/tcp/{host}/{port}; printf '{request}' >&3; cat <&3"),
    )?;
    terminal.see(NODE, "\nhello from hello", MAX_WAIT).await?;
    ended(terminal, NODE, 0).await
}

async fn follow(terminal: &Terminal, step: &ReadmeStep) -> Result<()> {
    let typed = match step.window {
        NODE => format!("{EMPTY_MACHINE} exec {}'", step.command),
        _ => step.command.to_owned(),
    };
    terminal.type_line(step.window, &typed)?;
    let first = step.command.starts_with("cargo");
    let max_wait = if first { BUILDING } else { MAX_WAIT };
    let seen = async || {
        let screen = terminal.screen(step.window)?;
        let missing = step.sees.iter().find(|sight| !screen.contains(**sight));
        if missing.is_some() && step.asks_again {
            // A person who is told that it is being started asks again.
            terminal.type_line(step.window, step.command)?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok((missing, screen))
    };
    eventually(max_wait, "all of it is seen", seen, |(missing, _)| missing.is_none()).await?;
    match step.then {
        AfterStep::Ends(code) => ended(terminal, step.window, code).await,
        AfterStep::Interrupts(code) => interrupt(terminal, step.window, code).await,
        AfterStep::GoesOn => Ok(()),
    }
}

async fn interrupt(terminal: &Terminal, window: &str, code: u8) -> Result<()> {
    terminal.press(window, "C-c")?;
    ended(terminal, window, code).await
}

async fn ended(terminal: &Terminal, window: &str, want: u8) -> Result<()> {
    let code = terminal.exit_code(window, MAX_WAIT).await?;
    ensure!(code == want, "it ended with {code} and not with {want}");
    Ok(())
}
