//! Families of `/metrics/cadvisor`, compared with the files of the container's group, of its network and of the machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use oarsman_e2e::cluster::TestCluster;
use oarsman_e2e::inspect::RuntimeInspector;
use oarsman_e2e::scenario::ScenarioContext;
use rustix::fs::statvfs;
use serde_json::Value;

use super::group_rows::{GroupFile, GroupRow, MIB, ROWS};
use super::load::MEMORY_LIMIT;
use super::scrape::Scrape;
use super::second_sources::SecondSources;

const GIB: f64 = (1 << 30) as f64;
const OF_BURNER: &str = "container=\"burner\"";

/// The group of the container with the known load.
struct ContainerGroup<'a> {
    inspector: &'a RuntimeInspector,
    path: PathBuf,
    is_v1: bool,
}

impl ContainerGroup<'_> {
    fn text(&self, file: &str) -> Option<String> {
        self.inspector.group_value(&self.path, file).ok()
    }

    fn number(&self, (file, key, unit): GroupFile) -> Option<f64> {
        let text = self.text(file)?;
        let line = match key {
            "" => text.as_str(),
            key => text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?,
        };
        let word = line.rsplit(' ').next()?;
        Some(word.strip_prefix("total=").unwrap_or(word).parse::<f64>().ok()? / unit)
    }

    fn file_of(&self, row: &GroupRow) -> GroupFile {
        if self.is_v1 { row.1 } else { row.2 }
    }

    fn numbers(&self) -> Vec<Option<f64>> {
        ROWS.iter().map(|row| self.number(self.file_of(row))).collect()
    }

    fn working_set(&self) -> Option<f64> {
        let (usage, inactive) = match self.is_v1 {
            true => ("memory.usage_in_bytes", "total_inactive_file"),
            false => ("memory.current", "inactive_file"),
        };
        Some(self.number((usage, "", 1.0))? - self.number(("memory.stat", inactive, 1.0))?)
    }
}

pub(super) async fn compare_groups(
    sources: &mut SecondSources,
    cx: &ScenarioContext,
    cluster: &TestCluster,
    metrics: &Scrape,
) -> Result<()> {
    let pod = cluster.pod("measured").await?;
    let group = find_group(cx.inspector(), &pod)?;
    let version = if group.is_v1 { 1.0 } else { 2.0 };
    sources.equal(
        "kubelet_cgroup_version",
        metrics.value("kubelet_cgroup_version", &[])?,
        version,
    )?;
    let process =
        *cx.inspector().processes(&container_id(&pod)?).await?.first().context("it runs")?;
    let (before, network) = (group.numbers(), interface(process)?);
    let began = Timestamp::now().as_second() as f64;
    let shown = Scrape::of(cluster, "/metrics/cadvisor").await?;
    let after = group.numbers();
    for ((row, before), after) in ROWS.iter().zip(before).zip(after) {
        let (family, spare) = (row.0, row.3);
        match before.zip(after) {
            Some((before, after)) => {
                let (low, high) = (before.min(after) - spare, before.max(after) + spare);
                sources.between(family, shown.value(family, &[OF_BURNER])?, low, high)?;
            }
            None => sources.absent(family, shown.find(family, &[OF_BURNER]))?,
        }
    }
    compare_limits(sources, &group, &shown)?;
    compare_network(sources, &shown, &network, &interface(process)?)?;
    compare_times(sources, &pod, &shown, began)?;
    compare_machine(sources, &shown)?;
    compare_file_systems(sources, cluster, &shown)
}

/// What the pod's spec asks for, and what follows from it.
fn compare_limits(
    sources: &mut SecondSources,
    group: &ContainerGroup<'_>,
    shown: &Scrape,
) -> Result<()> {
    let most = group.text("pids.max").and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let processes = group.text("cgroup.procs").context("cgroup.procs")?.lines().count() as f64;
    let working_set = group.working_set().context("a working set")?;
    let rows = [
        ("container_spec_cpu_period", 100_000.0, 0.0),
        ("container_spec_cpu_quota", 20_000.0, 0.0),
        // 200m are 204 shares; v2 has weights, which are coarser.
        ("container_spec_cpu_shares", 204.0, if group.is_v1 { 0.0 } else { 20.0 }),
        ("container_spec_memory_limit_bytes", MEMORY_LIMIT, 0.0),
        ("container_threads_max", most, 0.0),
        ("container_processes", processes, 0.0),
        ("container_memory_working_set_bytes", working_set, MIB),
    ];
    for (family, known, spare) in rows {
        let value = shown.value(family, &[OF_BURNER])?;
        sources.between(family, value, known - spare, known + spare)?;
    }
    let family = "container_memory_failures_total";
    let faults = ["failure_type=\"pgfault\"", "scope=\"hierarchy\"", OF_BURNER];
    let key = if group.is_v1 { "total_pgfault" } else { "pgfault" };
    let known = group.number(("memory.stat", key, 1.0)).context("page faults")?;
    sources.between(family, shown.value(family, &faults)?, 1.0, known)
}

/// Counters of `eth0` in the order of the kernel's file: received bytes, packets, errors, drops, and the same of what was sent.
fn interface(process: u32) -> Result<Vec<f64>> {
    let text = fs::read_to_string(format!("/proc/{process}/net/dev"))?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("eth0:")).context("eth0")?;
    line.split_whitespace().map(|word| Ok(word.parse()?)).collect()
}

fn compare_network(
    sources: &mut SecondSources,
    shown: &Scrape,
    before: &[f64],
    after: &[f64],
) -> Result<()> {
    let counters = ["bytes_total", "packets_total", "errors_total", "packets_dropped_total"];
    for (way, first) in [("receive", 0), ("transmit", 8)] {
        for (number, counter) in counters.into_iter().enumerate() {
            let family = format!("container_network_{way}_{counter}");
            let value = shown.value(&family, &["pod=\"measured\"", "interface=\"eth0\""])?;
            let (low, high) = (before[first + number], after[first + number]);
            sources.between(&family, value, low, high)?;
        }
    }
    Ok(())
}

fn compare_times(
    sources: &mut SecondSources,
    pod: &Value,
    shown: &Scrape,
    began: f64,
) -> Result<()> {
    let started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"].as_str();
    let started = started.context("it runs")?.parse::<Timestamp>()?.as_second() as f64;
    let name = "container_start_time_seconds";
    sources.between(name, shown.value(name, &[OF_BURNER])?, started, started + 1.0)?;
    let name = "container_last_seen";
    let now = Timestamp::now().as_second() as f64;
    // Requests within a second get the same numbers.
    sources.between(name, shown.value(name, &[OF_BURNER])?, began - 1.0, now)
}

fn compare_machine(sources: &mut SecondSources, shown: &Scrape) -> Result<()> {
    let memory = fs::read_to_string("/proc/meminfo")?;
    let bytes = |key: &str| {
        let line = memory.lines().find_map(|line| line.strip_prefix(key)).context("a line")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok::<_, anyhow::Error>(kib * 1024.0)
    };
    let cores = fs::read_to_string("/proc/cpuinfo")?;
    let cores = cores.lines().filter(|line| line.starts_with("processor")).count() as f64;
    let rows = [
        ("machine_cpu_cores", cores),
        ("machine_memory_bytes", bytes("MemTotal:")?),
        ("machine_swap_bytes", bytes("SwapTotal:")?),
    ];
    rows.into_iter()
        .try_for_each(|(name, known)| sources.equal(name, shown.value(name, &[])?, known))
}

/// One of the machine's file systems is that of the root directory, which others use too.
fn compare_file_systems(
    sources: &mut SecondSources,
    cluster: &TestCluster,
    shown: &Scrape,
) -> Result<()> {
    let fs = statvfs(cluster.agent.root())?;
    let block = fs.f_frsize as f64;
    let rows = [
        ("container_fs_limit_bytes", fs.f_blocks as f64 * block, 0.0),
        ("container_fs_usage_bytes", (fs.f_blocks - fs.f_bfree) as f64 * block, GIB),
        ("container_fs_inodes_total", fs.f_files as f64, 100_000.0),
        ("container_fs_inodes_free", fs.f_ffree as f64, 100_000.0),
    ];
    for (family, known, spare) in rows {
        let distance = |value: &f64| (value - known).abs();
        let values = shown.values(family).into_iter();
        let nearest = values.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        sources.between(family, nearest.context(family)?, known - spare, known + spare)?;
    }
    Ok(())
}

fn container_id(pod: &Value) -> Result<String> {
    let id = pod["status"]["containerStatuses"][0]["containerID"].as_str();
    let id = id.and_then(|id| id.split("://").nth(1)).context("the container has an id")?;
    Ok(id.to_owned())
}

fn find_group<'a>(inspector: &'a RuntimeInspector, pod: &Value) -> Result<ContainerGroup<'a>> {
    let uid = pod["metadata"]["uid"].as_str().context("a pod has a UID")?;
    let of_pod = inspector.groups(uid)?.into_iter().next().context("the pod has a cgroup")?;
    let path: PathBuf = Path::new(&of_pod).join(container_id(pod)?);
    let is_v1 = inspector.group_value(&path, "memory.usage_in_bytes").is_ok();
    Ok(ContainerGroup { inspector, path, is_v1 })
}
