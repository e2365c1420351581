//! The project's own tasks: `cargo xtask --help` lists them.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task talks to the person who runs it"
)]

mod bench;
mod command;
mod commit;
mod conformance;
mod embedded;
mod first_run;
mod fuzz;
mod golden;
mod kubelet_kind;
mod rig;
mod stages;
mod takeover;
mod tidy;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "The project's own tasks")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check what a program can check: direction of dependencies, purity of core, docs, file sizes
    Tidy,
    /// Ask a real kube-apiserver about testing/pods and write its answers down
    Golden {
        /// Only manifests whose names contain one of these
        only: Vec<String>,
    },
    /// Live simulated lives: --seed N replays one with its trace, --mistakes makes known mistakes
    Sim {
        /// Passed on; --help tells
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the contract suite and every scenario that can run on the embedded runtime, with those that take minutes
    Embedded,
    /// Run a command beside a containerd of the rig, found by CONTAINER_RUNTIME_ENDPOINT
    Rig {
        /// Beside a control plane, too: KUBECONFIG is its admin's, and OARSMAN_RIG_* tell a node agent what it needs
        #[arg(long)]
        cluster: bool,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
    /// Run the official node tests against a node, and write conformance/RESULTS.md
    Conformance(conformance::ConformanceArguments),
    /// Measure the runtime alone, the Go kubelet and ours, and write docs/performance.md; or ours against a commit's
    Bench(bench::BenchArguments),
    /// Measure the first command of the README on a machine with only Rust and a linker, and that it leaves nothing
    FirstRun(first_run::FirstRunArguments),
    /// Search for inputs that break a parser, keep the corpus, and write docs/fuzz.md
    Fuzz(fuzz::FuzzArguments),
    /// Take over running pods from the program of a commit, give them back, and see that none of them is disturbed
    Takeover {
        /// Whose program runs the pods at first
        commit: String,
    },
    /// Run the stages of ./test (which installs what they need first: prefer it)
    Test {
        /// Name the stages and stop
        #[arg(long)]
        list: bool,
        /// Only these stages
        #[arg(long, num_args = 1.., value_name = "STAGE")]
        only: Vec<String>,
    },
}

fn main() -> Result<ExitCode> {
    let root = workspace_root()?;
    let done = match Cli::parse().task {
        Task::Rig { cluster, command } => return Ok(rig::run(&command, cluster)),
        Task::Conformance(arguments) => return Ok(conformance::run(&root, &arguments)),
        Task::Bench(arguments) => return bench::run(&root, &arguments),
        Task::FirstRun(arguments) => return first_run::run(&root, &arguments),
        Task::Takeover { commit } => takeover::run(&root, &commit),
        Task::Embedded => embedded::run(&root),
        Task::Fuzz(arguments) => fuzz::run(&root, &arguments),
        Task::Tidy => tidy::run(&root),
        Task::Golden { only } => golden::run(&root, &only),
        Task::Sim { arguments } => {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            command::cargo(&root, &sim(&arguments))
        }
        Task::Test { list: true, .. } => {
            stages::print_list();
            Ok(())
        }
        Task::Test { list: false, only } => stages::run(&root, &only),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The command line of the simulation: optimised, since there are many runs.
fn sim<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let cargo = ["run", "--quiet", "--profile", "sim", "--package", "oarsman-sim", "--"];
    [&cargo[..], arguments].concat()
}

fn workspace_root() -> Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().context("xtask stands one level below the workspace root")?;
    Ok(root.to_owned())
}
