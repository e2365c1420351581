//! `cargo xtask bench`: the runtime alone, the Go kubelet and ours, one after the other on the same rig with the same pods.
//!
//! All is measured as an API client sees it, by a watch at the API server. Pods name their node: the scheduler is not measured. The same calls
//! to the runtime alone, without a kubelet, give the lower bound of any agent.

mod against;
mod api;
mod figures;
mod floor;
mod floor_workload;
mod page;
mod pods;
mod process;
mod runtimes;
mod scrapes;
mod subject;
mod targets;
mod watch;
mod workload;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use oarsman_rig::parts::kubernetes;
use oarsman_rig::{ControlPlane, Rig, RigOptions, namespace};

use crate::command;
use crate::commit::Commit;
use crate::kubelet_kind::KubeletKind;
use figures::Results;
use subject::{Bench, BenchSubject};
use workload::{WorkloadPart, WorkloadSize};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArguments {
    /// A few pods and short waits, to see that it works; such figures are not kept
    #[arg(long)]
    quick: bool,
    /// Measures with this very program, which may not be optimised
    #[arg(long, hide = true)]
    here: bool,
    /// Measures nothing, and writes the page anew from the figures that are kept
    #[arg(long)]
    page: bool,
    /// Only this part of the work; the figures of the others stay as they are
    #[arg(long, value_enum)]
    part: Option<WorkloadPart>,
    /// Measures our program against that of a commit, in turns, and writes docs/bench-against.md
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["part", "only", "page"])]
    against: Option<String>,
    /// Measures the embedded runtime beside containerd with runc, without a kubelet, and writes docs/bench-runtimes.md
    #[arg(long, conflicts_with_all = ["part", "only", "page", "against"])]
    runtimes: bool,
    /// Only these; the figures of the others stay as they are
    #[arg(long, value_enum, num_args = 1.., value_name = "WHO")]
    only: Vec<BenchSubject>,
}

impl BenchArguments {
    /// Whether the figures are to be kept: those at full length.
    fn keeps(&self) -> bool {
        !self.quick
    }

    /// The subjects, in the order of the table.
    fn subjects(&self) -> impl Iterator<Item = BenchSubject> {
        let wanted = |who: &BenchSubject| self.only.is_empty() || self.only.contains(who);
        BenchSubject::ALL.into_iter().filter(wanted)
    }
}

/// Measures, prints the table and keeps it. First it rebuilds and restarts itself, optimised: the client's own time is in every figure.
pub(crate) fn run(root: &Path, arguments: &BenchArguments) -> Result<ExitCode> {
    if arguments.page {
        write_page(root, &Results::read(&file(root))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !arguments.here {
        let cargo = ["run", "--quiet", "--profile", "sim", "--package", "xtask", "--"];
        let own = std::env::args_os().skip(1).chain(["--here".into()]);
        let words: Vec<OsString> = cargo.iter().map(OsString::from).chain(own).collect();
        return command::cargo(root, &words).map(|()| ExitCode::SUCCESS);
    }
    let ready = || prepare(root, arguments);
    let measured = namespace::run_after(ready, || match inside(root, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    });
    Ok(measured)
}

/// Everything that needs a network.
fn prepare(root: &Path, arguments: &BenchArguments) -> Result<()> {
    if arguments.runtimes {
        return KubeletKind::Oarsman.prepare(root);
    }
    kubernetes::prepare(&kubernetes::CONTROL_PLANE)?;
    if let Some(commit) = &arguments.against {
        Commit::find(root, commit)?.build(root)?;
        return KubeletKind::Oarsman.prepare(root);
    }
    let kubelets = arguments.subjects().filter_map(BenchSubject::kubelet);
    kubelets.collect::<Vec<KubeletKind>>().into_iter().try_for_each(|kubelet| kubelet.prepare(root))
}

#[tokio::main]
async fn inside(root: &Path, arguments: &BenchArguments) -> Result<()> {
    let rig = Rig::start(RigOptions::default()).await?;
    if arguments.runtimes {
        let compared = runtimes::run(root, arguments.quick, &rig).await;
        rig.stop().await?;
        return compared;
    }
    let cluster = ControlPlane::start(&rig).await?;
    if let Some(commit) = &arguments.against {
        let compared = against::run(root, commit, arguments.quick, &rig, &cluster).await;
        cluster.stop()?;
        rig.stop().await?;
        return compared;
    }
    let measured = measure(root, arguments, &rig, &cluster).await;
    cluster.stop()?;
    rig.stop().await?;
    let results = measured?;
    println!("\n{}", page::table(&results));
    if !arguments.keeps() {
        return Ok(());
    }
    results.write(&file(root))?;
    write_page(root, &results)
}

fn write_page(root: &Path, results: &Results) -> Result<()> {
    let path = root.join("docs/performance.md");
    fs::write(&path, page::page(results)).with_context(|| format!("writing {}", path.display()))
}

async fn measure(
    root: &Path,
    arguments: &BenchArguments,
    rig: &Rig,
    cluster: &ControlPlane,
) -> Result<Results> {
    let mut results = match arguments.keeps() {
        true => Results::read(&file(root))?,
        false => Results::default(),
    };
    let size = if arguments.quick { WorkloadSize::QUICK } else { WorkloadSize::WHOLE };
    let bench = Bench::open(rig, cluster, size, arguments.part).await?;
    for who in arguments.subjects() {
        println!("bench: {}", who.shown());
        let figures = bench.measure(who).await.with_context(|| who.shown())?;
        match arguments.part {
            Some(part) => results.0.entry(who).or_default().take(part, figures),
            None => drop(results.0.insert(who, figures)),
        }
    }
    Ok(results)
}

/// The file of figures from which the page is written.
fn file(root: &Path) -> PathBuf {
    root.join("docs/performance.json")
}
