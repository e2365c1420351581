//! `cargo xtask first-run`: a newcomer's first command, on a machine with nothing but a linker and Rust. It measures the time from the start
//! of the program to the first answer of the pod, and that nothing is left afterwards.

mod command;
mod leftovers;
mod machine;
mod measure;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use command::FirstCommand;
use leftovers::HostState;
use machine::BareMachine;
use measure::FirstAnswer;

/// The most that the median may be.
const TARGET: Duration = Duration::from_secs(1);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct FirstRunArguments {
    /// This program, on this machine's files, in place of one that is built in a root of debootstrap's
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// How often
    #[arg(long, default_value_t = 10)]
    times: usize,
    /// Set by itself for the part in new namespaces
    #[arg(long, hide = true)]
    inside: bool,
}

/// Prepares, and does the rest in namespaces that end with it.
pub(crate) fn run(root: &Path, arguments: &FirstRunArguments) -> Result<ExitCode> {
    if arguments.inside {
        return inside(root, arguments).map(|()| ExitCode::SUCCESS);
    }
    if arguments.program.is_none() {
        BareMachine::prepare(root)?;
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    let status =
        unshare.arg(env::current_exe()?).args(env::args_os().skip(1)).arg("--inside").status();
    Ok(exit_code(status.context("cannot run unshare")?))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

#[tokio::main]
async fn inside(root: &Path, arguments: &FirstRunArguments) -> Result<()> {
    ensure!(arguments.times > 0, "it has to be run at least once");
    let first = match &arguments.program {
        Some(program) => FirstCommand::on_this_machine(root, program)?,
        None => {
            let machine = BareMachine::enter()?;
            let took = machine.build()?;
            println!("built from nothing in {} s", took.as_secs());
            machine.first_command()
        }
    };
    let mut answers = Vec::new();
    for time in 1..=arguments.times {
        let before = HostState::read()?;
        first.remove_root()?;
        let answer = FirstAnswer::measure(&first).await?;
        before.compare_until_clean().await?;
        println!("{time}: the pod answered after {} ms", answer.after.as_millis());
        answers.push(answer);
    }
    first.remove_root()?;
    report(answers)
}

fn report(mut answers: Vec<FirstAnswer>) -> Result<()> {
    answers.sort_by_key(|answer| answer.after);
    let median = &answers[answers.len() / 2];
    println!("\nthe median one:");
    for (at, line) in &median.lines {
        println!("  {:>5} ms  {line}", at.as_millis());
    }
    let times = answers.len();
    println!("median of {times}: {} ms; nothing was left", median.after.as_millis());
    ensure!(median.after <= TARGET, "more than {} ms", TARGET.as_millis());
    Ok(())
}
