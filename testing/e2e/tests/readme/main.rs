//! The README, typed into a terminal as a newcomer would: every command, in its order, with what comes of it.
//!
//! It runs outside of the rig's namespaces, because that is where a newcomer is: on a machine without a runtime the first
//! command sets one up.

mod page;
mod place;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::program::workspace;
use oarsman_e2e::terminal::Terminal;

use place::Place;

/// The first command builds the program, and perhaps a containerd.
const BUILDING: Duration = Duration::from_secs(45 * 60);
const PATIENCE: Duration = Duration::from_secs(120);

/// The terminals of the person who reads.
const FIRST: &str = "0";
const SECOND: &str = "second";
/// One on a machine that has containerd.
const NODE: &str = "node";

/// What is typed where, and what is seen then.
struct Step {
    command: &'static str,
    window: &'static str,
    sees: &'static [&'static str],
    then: Then,
}

/// What a person does when they have seen it.
enum Then {
    /// Wait until it has ended with this code.
    Ends(u8),
    /// Press Ctrl-C, and wait until it has ended with this code.
    Interrupts(u8),
    /// Let it run, and go to another terminal.
    GoesOn,
}

const STEPS: &[Step] = &[
    Step {
        command: "cargo run --release -- run examples/hello.yaml",
        window: FIRST,
        sees: &["hello | hello from hello", "hello: running at "],
        then: Then::GoesOn,
    },
    Step {
        command: "export PATH=$PWD/target/release:$PATH",
        window: SECOND,
        sees: &[],
        then: Then::Ends(0),
    },
    Step {
        command: "oarsman ps",
        window: SECOND,
        sees: &["NAME    READY   STATUS    RESTARTS", "hello   1/1     Running   0"],
        then: Then::Ends(0),
    },
    Step {
        command: "oarsman logs -f hello",
        window: SECOND,
        sees: &["hello from hello\nhello from hello"],
        then: Then::Interrupts(130),
    },
    Step {
        command: "oarsman run --detach examples/restart.yaml",
        window: SECOND,
        sees: &["in the background, process ", "oarsman stop --all"],
        then: Then::Ends(0),
    },
    Step {
        command: "oarsman explain crash",
        window: SECOND,
        sees: &["ended with exit code 3", "Next: "],
        then: Then::Ends(0),
    },
    Step {
        command: "oarsman events crash",
        window: SECOND,
        sees: &["REASON", "Started"],
        then: Then::Ends(0),
    },
    Step {
        command: "oarsman describe crash",
        window: SECOND,
        sees: &["Exit Code:", "examples/restart.yaml", "Events:"],
        then: Then::Ends(0),
    },
    Step {
        command: "oarsman stop --all",
        window: SECOND,
        sees: &["the agent has ended"],
        then: Then::Ends(0),
    },
    Step {
        command: "oarsman run examples/config.yaml",
        window: SECOND,
        sees: &["good morning, rower; the password has 8 letters", "the sea is calm"],
        then: Then::Interrupts(0),
    },
    Step {
        command: "oarsman run examples/job.yaml; echo \"it ended with $?\"",
        window: SECOND,
        sees: &["job | one is missing", "it ended with 7"],
        then: Then::Ends(0),
    },
    Step {
        command: "oarsman check examples/hello.yaml",
        window: SECOND,
        sees: &["examples/hello.yaml", "cgroups"],
        then: Then::Ends(1),
    },
    Step {
        command: "oarsman kubelet --config examples/kubelet.yaml",
        window: NODE,
        sees: &["the agent runs", "Started"],
        then: Then::Interrupts(0),
    },
];

#[test]
fn every_command_of_the_readme_is_typed_here() {
    let page = std::fs::read_to_string(workspace().join("README.md")).unwrap();
    let typed: Vec<&str> = STEPS.iter().map(|step| step.command).collect();
    assert_eq!(page::commands(&page), [&typed[..], &["./test"]].concat());
}

#[tokio::test]
async fn the_readme_works_as_it_is_written() {
    let place = Place::find().unwrap();
    let read = read(&place).await;
    place.leave().unwrap();
    read.unwrap();
}

async fn read(place: &Place) -> Result<()> {
    let terminal = Terminal::open(&place.socket(), workspace(), &Place::variables()).await?;
    terminal.window(SECOND, workspace()).await?;
    for step in STEPS {
        if step.command.starts_with("oarsman run --detach") {
            // As it says before: Ctrl-C ends each of them.
            interrupt(&terminal, FIRST, 0).await?;
        }
        if step.window == NODE {
            become_node(&terminal).await?;
        }
        let done = follow(&terminal, step).await;
        done.with_context(|| format!("at the command `{}`", step.command))?;
    }
    // Ending a kubelet ends no pod; ending the machine does.
    terminal.type_line(NODE, "exit")?;
    terminal.exit_code(NODE, PATIENCE).await.map(drop)
}

async fn follow(terminal: &Terminal, step: &Step) -> Result<()> {
    terminal.type_line(step.window, step.command)?;
    let first = step.command.starts_with("cargo");
    for sight in step.sees {
        terminal.see(step.window, sight, if first { BUILDING } else { PATIENCE }).await?;
    }
    match step.then {
        Then::Ends(code) => ended(terminal, step.window, code).await,
        Then::Interrupts(code) => interrupt(terminal, step.window, code).await,
        Then::GoesOn => Ok(()),
    }
}

async fn interrupt(terminal: &Terminal, window: &str, code: u8) -> Result<()> {
    terminal.press(window, "C-c")?;
    ended(terminal, window, code).await
}

async fn ended(terminal: &Terminal, window: &str, want: u8) -> Result<()> {
    let code = terminal.exit_code(window, PATIENCE).await?;
    ensure!(code == want, "it ended with {code} and not with {want}");
    Ok(())
}

/// Opens a terminal on a machine that has containerd where everybody looks for it.
async fn become_node(terminal: &Terminal) -> Result<()> {
    terminal.window(NODE, workspace()).await?;
    terminal.type_line(NODE, "xtask/workbench bash --noprofile --norc")?;
    terminal.see(NODE, "rig: containerd is at", BUILDING).await?;
    terminal.type_line(NODE, "export PATH=$PWD/target/release:$PATH; echo on a $((1 + 0)) node")?;
    terminal.see(NODE, "on a 1 node", PATIENCE).await.map(drop)
}
