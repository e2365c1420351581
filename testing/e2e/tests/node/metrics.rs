//! The kubelet's own metrics, read by Debian's promtool and compared with what the test itself knows.

mod agent_families;
mod documented;
mod group_families;
mod group_rows;
mod load;
mod plugins;
mod presence;
mod scrape;
mod second_sources;
mod server_families;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::{ScenarioContext, under_test};
use oarsman_rig::{KubeletOptions, parts};
use tokio::time::Instant;

use plugins::{ANSWERING, FAILING, NotingPlugins};
use scrape::{Growth, Scrape, kinds, text};
use second_sources::SecondSources;

const ENDPOINTS: [&str; 4] = ["/metrics", "/metrics/probes", "/metrics/slis", "/metrics/cadvisor"];
/// What promtool holds against names of the Go kubelet and of cAdvisor, which are kept.
const GO_NAMES: [&str; 7] = [
    "container_fs_inodes_total",
    "container_memory_failcnt",
    "kubelet_certificate_manager_client_expiration_renew_errors",
    "kubelet_evented_pleg_connection_error_count",
    "kubelet_evented_pleg_connection_success_count",
    "kubelet_preemptions",
    "kubelet_server_expiration_renew_errors",
];

pub(super) async fn the_kubelets_metrics_say_what_the_test_knows(
    cx: &ScenarioContext,
) -> Result<()> {
    let promtool = parts::promtool()?.context("promtool comes from Debian's packages")?;
    let documented = documented::families()?;
    let plugins = NotingPlugins::write(&cx.scratch())?;
    let cluster = start(cx, &plugins).await?;
    let (began, mut sources) = (Instant::now(), SecondSources::default());
    let before = Scrape::of(&cluster, "/metrics").await?;
    let load = load::run(cx, &cluster).await?;
    let after = settled(&cluster, &load).await?;
    let grown = Growth { before: &before, after: &after };
    agent_families::compare_counts(&mut sources, &load, &grown, began.elapsed().as_secs_f64())?;
    agent_families::compare_gauges(&mut sources, cx, &cluster).await?;
    agent_families::compare_disks(&mut sources, &cluster, &cx.scratch().join("disk")).await?;
    let noted = [plugins.executions(ANSWERING)?, plugins.executions(FAILING)?];
    let now = Scrape::of(&cluster, "/metrics").await?;
    agent_families::compare_plugins(&mut sources, &plugins, noted, &now)?;
    server_families::compare_requests(&mut sources, &cluster).await?;
    server_families::compare_program(&mut sources, &cluster, &now).await?;
    server_families::compare_process(&mut sources, &cluster).await?;
    group_families::compare_groups(&mut sources, cx, &cluster, &now).await?;
    compare_probes(&mut sources, &cluster).await?;
    let mut shown = BTreeMap::new();
    for endpoint in ENDPOINTS {
        let text = text(&cluster, endpoint).await?;
        check(&promtool, &text).context(endpoint)?;
        shown.extend(kinds(&text));
    }
    sources.finish(&documented, &shown)?;
    load::remove_disk(&cluster).await
}

/// A cluster whose agent has these plugins.
async fn start(cx: &ScenarioContext, plugins: &NotingPlugins) -> Result<TestCluster> {
    cx.set_cleanup_timeout(MAX_WAIT * 2);
    let plane = cx.cluster().await?;
    let options = KubeletOptions { flags: plugins.flags(), ..KubeletOptions::default() };
    let agent = cx.join(&under_test()?, &options)?;
    agent.start()?;
    plane.until_node_is_ready(agent.name(), MAX_WAIT).await?;
    Ok(TestCluster { plane, agent })
}

/// The numbers once the agent has noticed what the API server shows: counts of starts follow the watch of pods.
async fn settled(cluster: &TestCluster, load: &load::KnownLoad) -> Result<Scrape> {
    let look = async || Scrape::of(cluster, "/metrics").await;
    let is_noticed = |now: &Scrape| {
        let starts = now.sum("kubelet_pod_start_sli_duration_seconds_count", &[]);
        starts >= load.running + load.deleted
            && now.sum("kubelet_terminated_containers_total", &["exit_code=\"3\""]) >= load.ended
    };
    eventually(MAX_WAIT, "starts and ends are counted", look, is_noticed).await
}

/// Each probe wrote a line before it was counted, and goes on.
async fn compare_probes(sources: &mut SecondSources, cluster: &TestCluster) -> Result<()> {
    let lines = async || {
        let counted = cluster.kubectl(&["exec", "probed", "--", "cat", "/count"]).await?;
        Ok(counted.lines().count() as f64)
    };
    let first = eventually(MAX_WAIT, "three probes", lines, |lines| *lines >= 3.0).await?;
    let values = Scrape::of(cluster, "/metrics/probes").await?;
    let last = lines().await?;
    let labels = ["probe_type=\"Liveness\"", "pod=\"probed\""];
    let name = "prober_probe_total";
    let counted = values.value(name, &labels)?;
    sources.between(name, counted, first - 1.0, last)?;
    let name = "prober_probe_duration_seconds";
    sources.equal(name, values.value(&format!("{name}_count"), &labels)?, counted)
}

/// promtool reads the text, and holds nothing against it but names that are the Go kubelet's.
fn check(promtool: &Path, text: &str) -> Result<()> {
    let mut command = Command::new(promtool);
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("it has an input")?.write_all(text.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    let lines = said.iter().flat_map(|text| text.lines());
    let complaints: Vec<&str> = lines
        .filter(|line| !GO_NAMES.iter().any(|name| line.starts_with(name)))
        .filter(|line| !line.trim().is_empty())
        .collect();
    // It exits with 3 for complaints about names.
    let was_read = matches!(output.status.code(), Some(0 | 3));
    ensure!(was_read && complaints.is_empty(), "{}: {complaints:#?}", output.status);
    Ok(())
}
