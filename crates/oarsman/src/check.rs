//! `oarsman check`: what this machine lacks to run pods, each with the fix.
//!
//! Reading the machine's state (`facts`) and judging it (`evaluate`) are separate modules: the second has no effects, and is tested with facts
//! of machines that the tests do not run on.

mod config;
mod evaluate;
mod facts;
mod finding;
mod manifests;
mod report;
mod requirements;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use oarsman_clock::Clock;

use crate::runtime_endpoint::NamedRuntime;
use crate::{machine, threads};
use facts::MachineFacts;
use finding::{Finding, FindingSeverity};
use requirements::Requirements;

const EXAMPLES: &str = "\
Examples:
  oarsman check                                       can pods be run here?
  oarsman check pod.yaml                              and would this one be taken?
  oarsman check --config /var/lib/kubelet/config.yaml can this be a node with that configuration?
  oarsman check --runtime crio                        on that runtime?
  oarsman check -o json                               the same for a program";

/// What is looked at.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Manifests to be checked too: files, directories, URLs.
    #[arg(value_name = "FILE")]
    manifests: Vec<String>,
    /// A KubeletConfiguration: it is checked, and the machine is held against it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Below which everything of the agent would lie [default: /var/lib/oarsman, with --config /var/lib/kubelet].
    #[arg(long)]
    root_dir: Option<PathBuf>,
    /// What would run the containers: `embedded`, `containerd` or `crio`, or the socket of a runtime [default: embedded, with --config
    /// the one in it].
    #[arg(long, value_name = "RUNTIME")]
    runtime: Option<NamedRuntime>,
    /// What the findings look like.
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// Gathers and prints the findings. Fails if one of them is a problem.
pub(crate) fn run(flags: &Flags, clock: &dyn Clock) -> Result<ExitCode> {
    let (mut findings, requirements) = flags.requirements()?;
    findings.extend(threads::block_on(gather_findings(flags, &requirements, clock))?);
    flags.print(&findings)?;
    let is_fine = findings.iter().all(|finding| finding.weight < FindingSeverity::Problem);
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn gather_findings(
    flags: &Flags,
    requirements: &Requirements,
    clock: &dyn Clock,
) -> Result<Vec<Finding>> {
    let facts = MachineFacts::gather(requirements, clock).await;
    let manifests = manifests::read(&flags.manifests, &facts.host_name).await;
    Ok([manifests, evaluate::all(&facts, requirements)].concat())
}

impl Flags {
    /// The requirements on the machine, and the findings about the configuration file that they come from.
    fn requirements(&self) -> Result<(Vec<Finding>, Requirements)> {
        let root = |usual: &str| {
            let root = self.root_dir.clone().unwrap_or_else(|| usual.into());
            machine::absolute(&root)
        };
        let Some(path) = &self.config else {
            let runtime = self.runtime.clone().unwrap_or(NamedRuntime::Embedded);
            let requirements = Requirements::for_run_mode(root("/var/lib/oarsman")?, runtime);
            return Ok((Vec::new(), requirements));
        };
        let (findings, configuration) = config::read(&std::path::absolute(path)?);
        let configuration = configuration.unwrap_or_default();
        Ok((
            findings,
            config::requirements(&configuration, root("/var/lib/kubelet")?, self.runtime.clone()),
        ))
    }

    fn print(&self, findings: &[Finding]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let has_colours = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        match self.output {
            Output::Table => report::table(&mut out, findings, has_colours),
            Output::Json => report::json(&mut out, findings),
        }
    }
}
