//! Families about the servers, the program and its process, compared with requests of the test, the API server and /proc.

use std::fs;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use oarsman_e2e::cluster::TestCluster;
use serde_json::Value;

use super::scrape::{Growth, Scrape, text};
use super::second_sources::SecondSources;

/// How often the test asks.
const REQUESTS: u8 = 5;
/// Ticks of /proc in a second.
const TICKS: f64 = 100.0;
const PAGE: f64 = 4096.0;
/// Numbers are written with rounding.
const ROUNDING: f64 = 0.001;
/// Times of the API server are whole seconds, and calls to it take time on a busy machine.
const SPARE_SECONDS: f64 = 10.0;
/// When certificates of the rig end.
const CERTIFICATES_END: &str = "4096-01-01T00:00:00Z";

pub(super) async fn compare_requests(
    sources: &mut SecondSources,
    cluster: &TestCluster,
) -> Result<()> {
    let slis = Scrape::of(cluster, "/metrics/slis").await?;
    let before = Scrape::of(cluster, "/metrics").await?;
    for _ in 0..REQUESTS {
        text(cluster, "/metrics/slis").await?;
    }
    let after = Scrape::of(cluster, "/metrics").await?;
    let (grown, asked) = (Growth { before: &before, after: &after }, f64::from(REQUESTS));
    let labels = ["method=\"GET\"", "path=\"metrics/slis\"", "server_type=\"readwrite\""];
    let name = "kubelet_http_requests_total";
    sources.equal(name, grown.of(name, &labels), asked)?;
    let name = "kubelet_http_requests_duration_seconds";
    sources.equal(name, grown.of(&format!("{name}_count"), &labels), asked)?;
    let name = "kubelet_http_inflight_requests";
    // The one that asks.
    sources.equal(name, after.value(name, &["path=\"metrics\"", "readwrite"])?, 1.0)?;
    let healthy = text(cluster, "/healthz").await?;
    ensure!(healthy == "ok", "{healthy}");
    let checked = Scrape::of(cluster, "/metrics/slis").await?;
    let name = "kubernetes_healthcheck";
    sources.equal(name, checked.value(name, &["name=\"syncloop\""])?, 1.0)?;
    let grown = Growth { before: &slis, after: &checked };
    let (name, labels) = ("kubernetes_healthchecks_total", ["name=\"ping\"", "success"]);
    // Those of the test, its question whether all is well, and the last one.
    sources.equal(name, grown.of(name, &labels), asked + 2.0)
}

pub(super) async fn compare_program(
    sources: &mut SecondSources,
    cluster: &TestCluster,
    now: &Scrape,
) -> Result<()> {
    let node = cluster.plane.admin().json(&["get", "node", cluster.agent.name()]).await?;
    let version = node["status"]["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default();
    let labels = format!("git_version=\"{version}\"");
    sources.equal("kubernetes_build_info", now.value("kubernetes_build_info", &[&labels])?, 1.0)?;
    let end: Timestamp = CERTIFICATES_END.parse()?;
    let left = end.duration_since(Timestamp::now()).as_secs_f64();
    let name = "kubelet_certificate_manager_client_ttl_seconds";
    sources.between(name, now.value(name, &[])?, left - 60.0, left + 60.0)?;
    // None was replaced, and none had to be asked for.
    let rows = [
        ("kubelet_certificate_manager_client_expiration_renew_errors", ""),
        ("kubelet_server_expiration_renew_errors", ""),
        ("kubelet_certificate_manager_server_rotation_seconds", "_count"),
    ];
    for (family, suffix) in rows {
        sources.equal(family, now.value(&format!("{family}{suffix}"), &[])?, 0.0)?;
    }
    compare_lists(sources, now)?;
    compare_startup(sources, cluster, now, &node)
}

/// The lists of the runtime: their intervals add up to the time since the first, which is later than the start of the process.
fn compare_lists(sources: &mut SecondSources, now: &Scrape) -> Result<()> {
    let started = now.value("process_start_time_seconds", &[])?;
    let wall = Timestamp::now().as_millisecond() as f64 / 1e3;
    let name = "kubelet_pleg_last_seen_seconds";
    let last = now.value(name, &[])?;
    sources.between(name, last, started, wall)?;
    let intervals = now.value("kubelet_pleg_relist_interval_seconds_count", &[])?;
    let lists = now.value("kubelet_pleg_relist_duration_seconds_count", &[])?;
    sources.between("kubelet_pleg_relist_duration_seconds", lists, intervals, intervals + 1.0)?;
    let sum = now.value("kubelet_pleg_relist_interval_seconds_sum", &[])?;
    // The kernel's time of the boot is in whole seconds.
    sources.between("kubelet_pleg_relist_interval_seconds", sum, 0.0, last - started + 1.0)?;
    let streams = now.sum("kubelet_runtime_operations_total", &["get_container_events"]);
    let errors = "kubelet_evented_pleg_connection_error_count";
    let begun = "kubelet_evented_pleg_connection_success_count";
    let (failed, succeeded) = (now.value(errors, &[])?, now.value(begun, &[])?);
    ensure!(streams >= 1.0, "the runtime was asked for its events");
    sources.equal(errors, failed, streams - succeeded)?;
    sources.equal(begun, succeeded, streams - failed)
}

fn compare_startup(
    sources: &mut SecondSources,
    cluster: &TestCluster,
    now: &Scrape,
    node: &Value,
) -> Result<()> {
    let process = ProcessFiles::read(cluster.agent.pid()?)?;
    let value = |step: &str| now.value(&format!("kubelet_node_startup_{step}_seconds"), &[]);
    let family = |step: &str| format!("kubelet_node_startup_{step}_seconds");
    let before = value("pre_kubelet_duration")?;
    let known = process.start_ticks / TICKS;
    sources.between(&family("pre_kubelet_duration"), before, known - ROUNDING, known + ROUNDING)?;
    let [first, registration, ready] = [
        value("pre_registration_duration")?,
        value("registration_duration")?,
        value("post_registration_duration")?,
    ];
    let time = |at: &Value| {
        Ok::<_, anyhow::Error>(
            at.as_str().context("a time")?.parse::<Timestamp>()?.as_second() as f64
        )
    };
    let created = time(&node["metadata"]["creationTimestamp"])?;
    let conditions = node["status"]["conditions"].as_array().context("a node has conditions")?;
    let condition = conditions.iter().find(|it| it["type"] == "Ready").context("Ready")?;
    let became = time(&condition["lastTransitionTime"])?;
    let started = process.started;
    for (step, shown, known) in [
        ("pre_registration_duration", first, created - started),
        ("registration_duration", registration, 0.0),
        ("post_registration_duration", ready, became - created),
    ] {
        let (low, high) = ((known - SPARE_SECONDS).max(0.0), known + SPARE_SECONDS);
        sources.between(&family(step), shown, low, high)?;
    }
    let sum = before + first + registration + ready;
    let total = value("duration")?;
    sources.between(&family("duration"), total, sum - ROUNDING, sum + ROUNDING)
}

/// What the kernel tells of the agent's process.
struct ProcessFiles {
    cpu: f64,
    start_ticks: f64,
    /// In seconds since 1970.
    started: f64,
    virtual_bytes: f64,
    resident_bytes: f64,
    files: f64,
    max_files: f64,
}

impl ProcessFiles {
    fn read(pid: u32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, fields) = stat.rsplit_once(") ").context("a stat has a name")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let field =
            |at: usize| Ok::<f64, anyhow::Error>(fields.get(at).context("a field")?.parse()?);
        let boot = fs::read_to_string("/proc/stat")?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime ")).context("btime")?;
        let limits = fs::read_to_string(format!("/proc/{pid}/limits"))?;
        let limit = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))
            .context("a limit")?;
        let start_ticks = field(19)?;
        Ok(Self {
            cpu: (field(11)? + field(12)?) / TICKS,
            start_ticks,
            started: boot.parse::<f64>()? + start_ticks / TICKS,
            virtual_bytes: field(20)?,
            resident_bytes: field(21)? * PAGE,
            files: fs::read_dir(format!("/proc/{pid}/fd"))?.count() as f64,
            max_files: limit.split_whitespace().next().context("a number")?.parse()?,
        })
    }
}

/// The process works on while it is measured: memory and files change by less than this.
const SPARE_MEMORY: f64 = (64 << 20) as f64;
const SPARE_FILES: f64 = 64.0;

pub(super) async fn compare_process(
    sources: &mut SecondSources,
    cluster: &TestCluster,
) -> Result<()> {
    let pid = cluster.agent.pid()?;
    let before = ProcessFiles::read(pid)?;
    let now = Scrape::of(cluster, "/metrics").await?;
    let after = ProcessFiles::read(pid)?;
    let rows = [
        ("process_cpu_seconds_total", before.cpu, after.cpu, ROUNDING),
        ("process_start_time_seconds", after.started, after.started, ROUNDING),
        ("process_max_fds", after.max_files, after.max_files, 0.0),
        ("process_open_fds", before.files, after.files, SPARE_FILES),
        ("process_virtual_memory_bytes", before.virtual_bytes, after.virtual_bytes, SPARE_MEMORY),
        (
            "process_resident_memory_bytes",
            before.resident_bytes,
            after.resident_bytes,
            SPARE_MEMORY,
        ),
    ];
    for (family, before, after, spare) in rows {
        let (low, high) = (before.min(after) - spare, before.max(after) + spare);
        sources.between(family, now.value(family, &[])?, low, high)?;
    }
    Ok(())
}
