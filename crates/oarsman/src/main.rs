//! The program: flags become settings, settings an agent, and the agent runs until it is told to end.

mod assembly;
mod check;
mod commands;
mod connection_holder;
mod control_sequences;
mod cri_server;
mod kubelet;
mod local_api;
mod lock;
mod logging;
mod machine;
mod node_stats;
mod pod_network_flags;
mod run;
mod runtime_endpoint;
mod settings;
mod signals;
mod socket_path;
mod systemd;
mod threads;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser, Subcommand};
use oarsman_clock::{Clock, SystemClock};
use oarsman_shim::{helper, shim};

/// A Kubernetes node agent that also runs pods on a bare machine.
#[derive(Debug, Parser)]
#[command(name = "oarsman", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tell what this machine lacks to run pods, each with the fix.
    Check(Box<check::Flags>),
    /// Look after this node's pods, as the Go kubelet does.
    #[command(disable_help_flag = true)]
    Kubelet(kubelet::KubeletArguments),
    /// Hold an agent's connections for a moment when it is killed; agents start this by themselves.
    #[command(name = connection_holder::COMMAND, hide = true)]
    HoldConnections,
    /// Run pods here and now, and take them down when interrupted.
    Run(Box<run::Flags>),
    #[command(flatten)]
    Question(commands::ClientCommand),
}

fn main() -> ExitCode {
    // Before anything is made: both have to be processes of one thread.
    let mut words = env::args_os().skip(1);
    match words.next().as_ref().and_then(|word| word.to_str()) {
        Some(shim::ARGUMENT) => shim::main(&texts(words)),
        Some(helper::ARGUMENT) => helper::main(&texts(words)),
        _ => run_command(),
    }
}

fn texts(words: impl Iterator<Item = OsString>) -> Vec<String> {
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

#[expect(clippy::print_stderr, reason = "telling the person at the terminal is this program's job")]
fn run_command() -> ExitCode {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let done = match command() {
        Command::Check(flags) => check::run(&flags, &*clock),
        Command::Kubelet(words) => kubelet::run(&words, &clock),
        Command::Run(flags) => run::run(&flags, &clock),
        Command::HoldConnections => connection_holder::run_holder().map(|()| ExitCode::SUCCESS),
        Command::Question(question) => question.run(Arguments::command),
    };
    match done {
        Ok(code) => code,
        // The reader of a pipe, such as `head`, has closed it: no failure.
        Err(error) if commands::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oarsman: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The command to run. A program whose own name is `kubelet` runs that command.
fn command() -> Command {
    let mut words = env::args();
    let called = words.next().unwrap_or_default();
    if called.rsplit('/').next() == Some("kubelet") {
        return Command::Kubelet(kubelet::KubeletArguments::new(words.collect()));
    }
    Arguments::parse().command
}
