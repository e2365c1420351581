//! The kubelet's own metrics, read by Debian's promtool and compared with what the test itself knows.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use oarsman_core::exposition::strict::{self, SampleValues};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, long_running_pod};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, image, pod};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_e2e::server_clients::get_text;
use oarsman_rig::{images, parts};
use serde_json::json;

const KUBELET_PORT: u16 = 10250;
const PODS: usize = 3;
const ENDPOINTS: [&str; 3] = ["/metrics", "/metrics/probes", "/metrics/slis"];
/// What promtool holds against names of the Go kubelet, which are kept.
const GO_NAMES: [&str; 5] = [
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
    let cluster = TestCluster::start(cx).await?;
    let before = scrape(&cluster, "/metrics").await?;
    for number in 1..PODS {
        cluster.run(&long_running_pod(&format!("plain-{number}"))).await?;
    }
    cluster.run(&probed()).await?;
    cluster.wait_until_ready(PODS).await?;
    let running = async || running_pods(&scrape(&cluster, "/metrics").await?);
    let expected = running_pods(&before)? + PODS as f64;
    eventually(MAX_WAIT, "the pods are counted", running, |count| *count == expected).await?;
    let made = sandboxes(&scrape(&cluster, "/metrics").await?) - sandboxes(&before);
    ensure!(made == PODS as f64, "{made} sandboxes of {PODS}");
    compare_probes(&cluster).await?;
    let healthy = scrape(&cluster, "/metrics/slis").await?;
    let healthy = healthy.get("kubernetes_healthcheck{name=\"syncloop\",type=\"healthz\"}");
    ensure!(healthy == Some(&1.0), "the sync loop: {healthy:?}");
    for endpoint in ENDPOINTS {
        check(&promtool, &text(&cluster, endpoint).await?).context(endpoint)?;
    }
    Ok(())
}

/// A pod whose container counts its probes.
fn probed() -> PodManifest {
    let count = json!({ "exec": { "command": ["sh", "-c", "echo asked >> /count"] } });
    let mut probe = count;
    probe["periodSeconds"] = json!(1);
    // A busy machine may be slow, and no failure may restart the container, which would lose its count.
    probe["timeoutSeconds"] = json!(30);
    probe["failureThreshold"] = json!(1000);
    let main = image("main", images::BUSYBOX)
        .with("command", json!(["sleep", "100000"]))
        .with("livenessProbe", probe);
    pod("probed").with("terminationGracePeriodSeconds", 1).container(main)
}

async fn text(cluster: &TestCluster, path: &str) -> Result<String> {
    let server = SocketAddr::from((cluster.plane.node_address(), KUBELET_PORT));
    get_text(server, cluster.plane.kubelet_client(), path).await
}

async fn scrape(cluster: &TestCluster, path: &str) -> Result<SampleValues> {
    strict::read(&text(cluster, path).await?).map_err(anyhow::Error::msg)
}

fn running_pods(values: &SampleValues) -> Result<f64> {
    values.get("kubelet_running_pods").copied().context("kubelet_running_pods")
}

/// Sandboxes that the runtime made.
fn sandboxes(values: &SampleValues) -> f64 {
    let of = |name: &str| {
        let series =
            format!("kubelet_runtime_operations_{name}{{operation_type=\"run_podsandbox\"}}");
        values.get(&series).copied().unwrap_or_default()
    };
    of("total") - of("errors_total")
}

/// Each probe wrote a line before it was counted, and goes on.
async fn compare_probes(cluster: &TestCluster) -> Result<()> {
    let lines = async || {
        let counted = cluster.kubectl(&["exec", "probed", "--", "cat", "/count"]).await?;
        Ok(counted.lines().count() as f64)
    };
    let first = eventually(MAX_WAIT, "three probes", lines, |lines| *lines >= 3.0).await?;
    let values = scrape(cluster, "/metrics/probes").await?;
    let last = lines().await?;
    let is_ours = |series: &str| {
        series.starts_with("prober_probe_total{probe_type=\"Liveness\"")
            && series.contains("pod=\"probed\"")
    };
    let counted: f64 = values.iter().filter(|(series, _)| is_ours(series)).map(|(_, it)| it).sum();
    let is_right = first - 1.0 <= counted && counted <= last;
    ensure!(is_right, "{counted} probes, and between {first} and {last} lines of them");
    Ok(())
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
