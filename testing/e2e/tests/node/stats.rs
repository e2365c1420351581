//! What the node server says that pods use, compared with the control groups that the test reads itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster};
use oarsman_e2e::inspect::{RuntimeInspector, eventually};
use oarsman_e2e::manifest::{PodManifest, image, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_e2e::server_clients::get_text;
use oarsman_rig::images;
use serde_json::{Value, json};
use tokio::time::sleep;

const KUBELET_PORT: u16 = 10250;
/// What one container keeps in memory.
const HELD_BYTES: f64 = (64 << 20) as f64;
/// What is sent to another.
const SENT_BYTES: f64 = (4 << 20) as f64;
/// How much the memory of a process that only waits may change while it is measured.
const SPARE_BYTES: f64 = (1 << 20) as f64;
/// For so long one measurement serves several requests.
const SHARED_FOR: Duration = Duration::from_millis(1100);
/// Counters are sent as seconds, with rounding.
const SPARE_SECONDS: f64 = 1e-6;

pub(super) async fn the_numbers_of_pods_are_those_of_their_cgroups(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    cluster.run(&measured()).await?;
    cluster.wait_until_ready(1).await?;
    let status = cluster.pod("measured").await?;
    let address = status["status"]["podIP"].as_str().context("the pod has an address")?.to_owned();
    cluster.run(&sender(&address)).await?;
    cluster.wait_until_ready(2).await?;

    let look = async || {
        let summary = summary(&cluster).await?;
        Ok(of_pod(&summary, "measured")?["network"]["rxBytes"].as_f64().unwrap_or_default())
    };
    let received = |bytes: &f64| *bytes >= SENT_BYTES;
    eventually(MAX_WAIT, "what was sent has been received", look, received).await?;

    let groups = PodGroups::find(cx.inspector(), &status)?;
    for endpoint in ["/metrics/resource", "/metrics/cadvisor", "/stats/summary"] {
        // Requests within a second get the numbers of the one before.
        sleep(SHARED_FOR).await;
        let before = groups.read()?;
        let shown = ShownNumbers::of(&get(&cluster, endpoint).await?)?;
        let after = groups.read()?;
        ensure!(
            shown.burner_seconds + SPARE_SECONDS >= before.burner_seconds
                && shown.burner_seconds <= after.burner_seconds + SPARE_SECONDS,
            "CPU time {shown:?} is not between {before:?} and {after:?}"
        );
        let least = before.holder_bytes.min(after.holder_bytes) - SPARE_BYTES;
        let most = before.holder_bytes.max(after.holder_bytes) + SPARE_BYTES;
        ensure!(
            shown.holder_bytes >= HELD_BYTES && (least..=most).contains(&shown.holder_bytes),
            "memory {shown:?} is not about {before:?} and {after:?}"
        );
    }
    let cadvisor = get(&cluster, "/metrics/cadvisor").await?;
    let labels = ["pod=\"measured\"", "interface=\"eth0\""];
    let received = sample(&cadvisor, "container_network_receive_bytes_total", &labels)?;
    ensure!(received >= SENT_BYTES, "{received} bytes were received");
    let labels = ["container=\"burner\""];
    let throttled = sample(&cadvisor, "container_cpu_cfs_throttled_periods_total", &labels)?;
    ensure!(throttled > 0.0, "a loop with a limit of 200m is throttled");
    // The first rate is over a tenth of a second, which is one period of the limit.
    let look = async || {
        let summary = summary(&cluster).await?;
        let cpu = &of_container(of_pod(&summary, "measured")?, "burner")?["cpu"];
        Ok(cpu["usageNanoCores"].as_u64().unwrap_or_default())
    };
    let is_limited = |nano_cores: &u64| (100_000_000..250_000_000).contains(nano_cores);
    eventually(MAX_WAIT, "a loop with a limit of 200m uses that", look, is_limited).await?;
    Ok(())
}

/// One container with a known load, one with known memory, and one that receives what it is sent.
fn measured() -> PodManifest {
    let busy = image("burner", images::BUSYBOX)
        .with("command", json!(["sh", "-c", "while :; do :; done"]))
        .with("resources", json!({ "limits": { "cpu": "200m" } }));
    // An input that stays open, so that the end of it does not end the connection.
    let receive = "sleep 100000 | nc -l -p 9000 > /dev/null; exec sleep 100000";
    pod("measured")
        .with("terminationGracePeriodSeconds", 1)
        .container(busy)
        .container(script_container("holder", &["alloc:64Mi", "forever"]))
        .container(image("receiver", images::BUSYBOX).with("command", json!(["sh", "-c", receive])))
}

fn sender(address: &str) -> PodManifest {
    let send = format!(
        "until head -c 4194304 /dev/zero | nc {address} 9000; do sleep 1; done; exec sleep 100000"
    );
    let main = image("main", images::BUSYBOX).with("command", json!(["sh", "-c", send]));
    pod("sender").with("terminationGracePeriodSeconds", 1).container(main)
}

async fn get(cluster: &TestCluster, path: &str) -> Result<String> {
    let server = SocketAddr::from((cluster.plane.node_address(), KUBELET_PORT));
    get_text(server, cluster.plane.kubelet_client(), path).await
}

async fn summary(cluster: &TestCluster) -> Result<Value> {
    Ok(serde_json::from_str(&get(cluster, "/stats/summary").await?)?)
}

fn of_pod<'a>(summary: &'a Value, name: &str) -> Result<&'a Value> {
    let pods = summary["pods"].as_array().context("a summary has pods")?;
    let found = pods.iter().find(|pod| pod["podRef"]["name"] == name);
    found.with_context(|| format!("the summary has no {name}: {summary:#}"))
}

fn of_container<'a>(pod: &'a Value, name: &str) -> Result<&'a Value> {
    let containers = pod["containers"].as_array().context("a pod has containers")?;
    let found = containers.iter().find(|container| container["name"] == name);
    found.with_context(|| format!("the pod has no {name}: {pod:#}"))
}

/// The value of the one sample of a family that has these labels.
fn sample(text: &str, family: &str, labels: &[&str]) -> Result<f64> {
    let is_wanted = |line: &&str| {
        let rest = line.strip_prefix(family);
        rest.is_some_and(|rest| rest.starts_with('{'))
            && labels.iter().all(|label| line.contains(label))
    };
    let line = text.lines().find(is_wanted);
    let line = line.with_context(|| format!("no {family} with {labels:?} in\n{text}"))?;
    let value = line.rsplit_once("} ").and_then(|(_, rest)| rest.split(' ').next());
    Ok(value.context("a sample has a value")?.parse()?)
}

/// What is shown of two containers, or read from their groups.
#[derive(Clone, Copy, Debug)]
struct ShownNumbers {
    burner_seconds: f64,
    /// The working set.
    holder_bytes: f64,
}

impl ShownNumbers {
    fn of(text: &str) -> Result<Self> {
        match serde_json::from_str::<Value>(text) {
            Ok(summary) => Self::of_summary(&summary),
            Err(_) => Self::of_metrics(text),
        }
    }

    fn of_summary(summary: &Value) -> Result<Self> {
        let pod = of_pod(summary, "measured")?;
        let nanos = &of_container(pod, "burner")?["cpu"]["usageCoreNanoSeconds"];
        let bytes = &of_container(pod, "holder")?["memory"]["workingSetBytes"];
        Ok(Self {
            burner_seconds: nanos.as_f64().context("CPU time is a number")? / 1e9,
            holder_bytes: bytes.as_f64().context("memory is a number")?,
        })
    }

    fn of_metrics(text: &str) -> Result<Self> {
        let labels = |container| [container, "pod=\"measured\""];
        Ok(Self {
            burner_seconds: sample(
                text,
                "container_cpu_usage_seconds_total",
                &labels("container=\"burner\""),
            )?,
            holder_bytes: sample(
                text,
                "container_memory_working_set_bytes",
                &labels("container=\"holder\""),
            )?,
        })
    }
}

/// The control groups of the two containers.
struct PodGroups<'a> {
    inspector: &'a RuntimeInspector,
    burner: PathBuf,
    holder: PathBuf,
}

impl<'a> PodGroups<'a> {
    fn find(inspector: &'a RuntimeInspector, pod: &Value) -> Result<Self> {
        let uid = pod["metadata"]["uid"].as_str().context("a pod has a UID")?;
        let own = inspector.groups(uid)?.into_iter().next().context("the pod has a cgroup")?;
        let of_container = |name: &str| {
            let statuses = pod["status"]["containerStatuses"].as_array();
            let status = statuses.into_iter().flatten().find(|status| status["name"] == name);
            let id = status.and_then(|status| status["containerID"].as_str()?.split("://").nth(1));
            Ok::<_, anyhow::Error>(own.join(id.with_context(|| format!("{name} has an id"))?))
        };
        Ok(Self { inspector, burner: of_container("burner")?, holder: of_container("holder")? })
    }

    fn read(&self) -> Result<ShownNumbers> {
        Ok(ShownNumbers {
            burner_seconds: self.cpu_seconds(&self.burner)?,
            holder_bytes: self.working_set(&self.holder)?,
        })
    }

    fn cpu_seconds(&self, group: &Path) -> Result<f64> {
        match self.inspector.group_value(group, "cpuacct.usage") {
            Ok(nanos) => Ok(nanos.parse::<f64>()? / 1e9),
            Err(_) => Ok(self.keyed(group, "cpu.stat", "usage_usec")? / 1e6),
        }
    }

    fn working_set(&self, group: &Path) -> Result<f64> {
        match self.inspector.group_value(group, "memory.usage_in_bytes") {
            Ok(usage) => {
                let inactive = self.keyed(group, "memory.stat", "total_inactive_file")?;
                Ok(usage.parse::<f64>()? - inactive)
            }
            Err(_) => {
                let usage: f64 = self.inspector.group_value(group, "memory.current")?.parse()?;
                Ok(usage - self.keyed(group, "memory.stat", "inactive_file")?)
            }
        }
    }

    fn keyed(&self, group: &Path, file: &str, key: &str) -> Result<f64> {
        let text = self.inspector.group_value(group, file)?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        Ok(line.with_context(|| format!("{file} has {key}"))?.parse()?)
    }
}
