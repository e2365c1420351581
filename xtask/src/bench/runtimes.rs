//! `cargo xtask bench --runtimes`: containerd with runc and the embedded runtime on one rig, in turns, by the same calls over their CRI sockets.

mod embedded_process;
mod figures;
mod overhead;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use oarsman_rig::Rig;
use tokio::time::{Duration, Instant, sleep};

use super::floor::{Floor, StartedPod};
use super::pods::Shape;
use super::workload::random_pause;
use crate::command::first_line;
use crate::kubelet_kind::KubeletKind;
use embedded_process::EmbeddedProcess;
use figures::{BothRuntimes, RuntimeFigures, shown};
use overhead::Overhead;

const PAGE: &str = "docs/bench-runtimes.md";

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct RuntimesSize {
    rounds: usize,
    /// Pods one after the other, in each turn.
    singles: usize,
    /// Pods all at once, in each turn.
    bursts: [usize; 2],
    /// Pods at rest, once for each runtime.
    idle: usize,
    /// How long pods at rest are measured, and how long they have to settle before.
    window: Duration,
    settling: Duration,
}

const WHOLE: RuntimesSize = RuntimesSize {
    rounds: 3,
    singles: 20,
    bursts: [50, 100],
    idle: 100,
    window: Duration::from_secs(300),
    settling: Duration::from_secs(20),
};
const QUICK: RuntimesSize = RuntimesSize {
    rounds: 1,
    singles: 3,
    bursts: [5, 10],
    idle: 5,
    window: Duration::from_secs(5),
    settling: Duration::from_secs(2),
};

/// Measures, tells, and keeps what was measured at length.
pub(super) async fn run(root: &Path, quick: bool, rig: &Rig) -> Result<()> {
    let size = if quick { QUICK } else { WHOLE };
    let program = KubeletKind::Oarsman.program()?;
    let ours = EmbeddedProcess::start(&program, rig).await?;
    let floors = BothRuntimes {
        containerd: Floor::on(rig)?,
        embedded: Floor::of_client(rig, ours.client()?)?,
    };
    let mut both = BothRuntimes::<RuntimeFigures>::default();
    for round in 0..size.rounds {
        // The one that comes second finds warm caches: each comes first in turn.
        let embedded_first = round % 2 == 1;
        for is_embedded in [embedded_first, !embedded_first] {
            let figures = both.get_mut(is_embedded);
            turn(floors.get(is_embedded), size, round, figures).await?;
            println!("bench: round {}, {}: {figures}", round + 1, shown(is_embedded));
        }
    }
    for is_embedded in [false, true] {
        let figures = both.get_mut(is_embedded);
        let others = if is_embedded { super::process::runtime(rig)? } else { ours.pids()? };
        rest(floors.get(is_embedded), size, others, figures).await?;
        println!("bench: at rest, {}: {figures}", shown(is_embedded));
    }
    ours.stop().await?;
    both.containerd.programs_mb = Some(megabytes(&containerd_programs(rig))?);
    both.embedded.programs_mb = Some(megabytes(std::slice::from_ref(&program))?);
    let page = page::page(&versions(rig, &program)?, size, &both);
    println!("\n{page}");
    if !quick {
        fs::write(root.join(PAGE), page).with_context(|| format!("writing {PAGE}"))?;
    }
    Ok(())
}

/// What a node needs of containerd with runc.
fn containerd_programs(rig: &Rig) -> [PathBuf; 3] {
    let parts = rig.parts();
    [
        parts.containerd.join("containerd"),
        parts.containerd.join("containerd-shim-runc-v2"),
        parts.runc.join("runc"),
    ]
}

fn megabytes(programs: &[PathBuf]) -> Result<f64> {
    let size = |program: &PathBuf| {
        fs::metadata(program).with_context(|| format!("looking at {}", program.display()))
    };
    let sizes: Vec<u64> =
        programs.iter().map(|program| Ok(size(program)?.len())).collect::<Result<_>>()?;
    Ok(sizes.iter().sum::<u64>() as f64 / 1e6)
}

fn versions(rig: &Rig, program: &Path) -> Result<[String; 3]> {
    let parts = rig.parts();
    let version = |program: &Path| first_line(Command::new(program).arg("--version"));
    Ok([
        version(&parts.containerd.join("containerd"))?,
        version(&parts.runc.join("runc"))?,
        version(program)?,
    ])
}

/// Pods one after the other, then all at once.
async fn turn(
    floor: &Floor,
    size: RuntimesSize,
    round: usize,
    figures: &mut RuntimeFigures,
) -> Result<()> {
    for index in 0..size.singles {
        random_pause().await;
        let (began, name) = (Instant::now(), format!("single-{round}-{index}"));
        let pod = floor.start(&name, Shape::Plain).await?;
        figures.starts.push(began.elapsed());
        random_pause().await;
        let began = Instant::now();
        end(floor, &pod).await?;
        figures.deletes.push(began.elapsed());
    }
    for (kind, count) in size.bursts.into_iter().enumerate() {
        sleep(size.settling / 4).await;
        let began = Instant::now();
        let pods = start_all(floor, &format!("burst-{round}-{count}"), count).await?;
        figures.bursts[kind].running.push(began.elapsed());
        let began = Instant::now();
        end_all(floor, &pods).await?;
        figures.bursts[kind].gone.push(began.elapsed());
    }
    Ok(())
}

/// Memory and processor time of pods that do nothing.
async fn rest(
    floor: &Floor,
    size: RuntimesSize,
    others: Vec<u32>,
    figures: &mut RuntimeFigures,
) -> Result<()> {
    let before = Overhead::read(&others)?;
    let pods = start_all(floor, "rest", size.idle).await?;
    sleep(size.settling).await;
    let (settled, began) = (Overhead::read(&others)?, Instant::now());
    sleep(size.window).await;
    let after = Overhead::read(&others)?;
    let used = after.cpu.saturating_sub(settled.cpu).as_secs_f64();
    figures.idle_cpu = Some(100.0 * used / began.elapsed().as_secs_f64());
    let count = f64::from(u32::try_from(size.idle)?);
    figures.pss_mib_a_pod = Some((after.pss_mib - before.pss_mib) / count);
    figures.processes_a_pod = Some(after.processes.saturating_sub(before.processes) / size.idle);
    end_all(floor, &pods).await
}

async fn start_all(floor: &Floor, prefix: &str, count: usize) -> Result<Vec<StartedPod>> {
    let names: Vec<String> = (0..count).map(|index| format!("{prefix}-{index}")).collect();
    try_join_all(names.iter().map(|name| floor.start(name, Shape::Plain))).await
}

async fn end_all(floor: &Floor, pods: &[StartedPod]) -> Result<()> {
    try_join_all(pods.iter().map(|pod| end(floor, pod))).await.map(drop)
}

/// Stops a pod and removes it, as a kubelet does.
async fn end(floor: &Floor, pod: &StartedPod) -> Result<()> {
    floor.stop(pod).await?;
    floor.remove(pod).await
}
