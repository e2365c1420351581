//! `cargo xtask bench --against COMMIT`: two programs of ours in turns on one rig, and whether the newer one costs more.

mod counts;
mod figures;
mod page;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use oarsman_rig::{ControlPlane, Implementation, Kubelet, KubeletOptions, Rig};
use tokio::time::{Duration, sleep};

use super::pods::Shape;
use super::subject::{Bench, ENDING, NODE, READY};
use super::watch::PodTimesWatch;
use super::workload::{WorkloadSize, random_pause};
use crate::command::first_line;
use crate::commit::Commit;
use crate::kubelet_kind;
use counts::CallCounter;
pub(in crate::bench) use figures::median;
use figures::{Pairwise, ProgramRound};

const PAGE: &str = "docs/bench-against.md";

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct RoundSize {
    rounds: usize,
    /// Pods one after the other, in each turn.
    singles: usize,
    /// Pods all at once.
    burst: usize,
    /// Bursts in each turn: a single one varies by half of its time on a machine with other work.
    bursts: usize,
    /// How long calls and writes may still come after the last pod has started or gone.
    settling: Duration,
}

const WHOLE: RoundSize =
    RoundSize { rounds: 3, singles: 20, burst: 50, bursts: 3, settling: Duration::from_secs(5) };
const QUICK: RoundSize =
    RoundSize { rounds: 1, singles: 3, burst: 5, bursts: 2, settling: Duration::from_secs(3) };

/// Measures, tells, and keeps what was measured at length.
pub(super) async fn run(
    root: &Path,
    commit: &str,
    quick: bool,
    rig: &Rig,
    cluster: &ControlPlane,
) -> Result<()> {
    let commit = Commit::find(root, commit)?;
    let programs =
        Pairwise { theirs: commit.program()?, ours: kubelet_kind::KubeletKind::Oarsman.program()? };
    let extent = if quick { QUICK } else { WHOLE };
    let bench = Bench::open(rig, cluster, WorkloadSize::QUICK, None).await?;
    let mut turns = Pairwise { theirs: Vec::new(), ours: Vec::new() };
    for round in 0..extent.rounds {
        // The program that comes second finds warm caches: each comes first in turn.
        let theirs_first = round % 2 == 0;
        for is_theirs in [theirs_first, !theirs_first] {
            let program = if is_theirs { &programs.theirs } else { &programs.ours };
            println!("bench: round {}, {}", round + 1, program.display());
            let program_round = bench.program_round(program, extent).await?;
            println!("bench: {program_round}");
            if is_theirs {
                turns.theirs.push(program_round);
            } else {
                turns.ours.push(program_round);
            }
        }
    }
    let page = page::page(&commit, &own_commit(root)?, extent, &turns);
    println!("\n{page}");
    if !quick {
        fs::write(root.join(PAGE), page).with_context(|| format!("writing {PAGE}"))?;
    }
    Ok(())
}

/// The commit of the work tree, and whether something in it is not committed.
fn own_commit(root: &Path) -> Result<String> {
    first_line(Command::new("git").current_dir(root).args([
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
    ]))
}

impl Bench<'_> {
    /// A program joins, starts and stops pods, and leaves.
    async fn program_round(&self, program: &Path, extent: RoundSize) -> Result<ProgramRound> {
        let which = Implementation::Oarsman(program.to_owned());
        let options = KubeletOptions { name: NODE.to_owned(), ..KubeletOptions::default() };
        let agent = Kubelet::new(self.rig, self.cluster, &which, &options)?;
        let pod_times = PodTimesWatch::begin(&self.api).await?;
        agent.start()?;
        let measured = async {
            self.api.until_ready(NODE, READY).await?;
            self.pods_of_a_turn(&pod_times, extent).await
        };
        let measured: Result<ProgramRound> = measured.await;
        let program_round =
            measured.map_err(|error| anyhow!("{error:#}; its log ends:\n{}", agent.log_tail()))?;
        agent.terminate(ENDING).await?;
        self.api.delete_node(NODE).await?;
        agent.remove_files();
        Ok(program_round)
    }

    async fn pods_of_a_turn(
        &self,
        pod_times: &PodTimesWatch,
        extent: RoundSize,
    ) -> Result<ProgramRound> {
        let counter = CallCounter { api: self.api.client(), runtime: self.rig.metrics() };
        let (names, mut program_round) = (self.names(extent.singles), ProgramRound::default());
        sleep(extent.settling).await;
        let before = counter.read().await?;
        for name in &names {
            random_pause().await;
            program_round
                .starts
                .push(self.start_all(pod_times, std::slice::from_ref(name), Shape::Plain).await?);
        }
        sleep(extent.settling).await;
        let between = counter.read().await?;
        for name in &names {
            random_pause().await;
            program_round.stops.push(self.stop_all(pod_times, std::slice::from_ref(name)).await?);
        }
        sleep(extent.settling).await;
        let after = counter.read().await?;
        // What the bench itself wrote: a create, and a delete.
        program_round.start_counts = between.since(&before).each(names.len()).without_writes(1.0);
        program_round.stop_counts = after.since(&between).each(names.len()).without_writes(1.0);
        for _ in 0..extent.bursts {
            let names = self.names(extent.burst);
            program_round.bursts.push(self.start_all(pod_times, &names, Shape::Plain).await?);
            program_round.bursts_gone.push(self.stop_all(pod_times, &names).await?);
            sleep(extent.settling).await;
        }
        Ok(program_round)
    }
}
