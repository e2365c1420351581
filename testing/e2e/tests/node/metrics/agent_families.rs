//! Families of `/metrics` about pods, images and volumes, compared with the load, the API server, the runtime and the disk.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::ScenarioContext;
use rustix::fs::statvfs;
use serde_json::Value;

use super::load::{CLAIM, EXIT_CODE, KnownLoad};
use super::plugins::{ANSWERING, FAILING, NotingPlugins};
use super::scrape::{Growth, Scrape, text};
use super::second_sources::SecondSources;

/// How much of a shared disk others may use or free while it is measured.
const SPARE_BYTES: f64 = (1_u64 << 30) as f64;
const SPARE_INODES: f64 = 100_000.0;

/// Counters and histograms, by what was done since the first answer.
pub(super) fn compare_counts(
    sources: &mut SecondSources,
    load: &KnownLoad,
    grown: &Growth<'_>,
    waited: f64,
) -> Result<()> {
    let (pods, created) = (load.admitted(), load.admitted() + load.rejected);
    let started_ok = grown.of("kubelet_started_containers_total", &[])
        - grown.of("kubelet_started_containers_errors_total", &[]);
    sources.equal("kubelet_started_containers_total", started_ok, load.started())?;
    let errors = grown.of("kubelet_started_containers_errors_total", &["ErrImagePull"]);
    sources.between("kubelet_started_containers_errors_total", errors, load.stuck, waited)?;
    let ended = format!("exit_code=\"{EXIT_CODE}\"");
    let labels = ["container_type=\"container\"", &ended, "reason=\"Error\""];
    let ended = grown.of("kubelet_terminated_containers_total", &labels);
    sources.equal("kubelet_terminated_containers_total", ended, load.ended)?;
    let made = ["operation_type=\"run_podsandbox\""];
    let rows: [(&str, &str, &[&str], f64); 15] = [
        ("kubelet_started_pods_total", "", &[], pods),
        ("kubelet_started_pods_errors_total", "", &[], 0.0),
        ("kubelet_run_podsandbox_duration_seconds", "_count", &[], pods),
        ("kubelet_runtime_operations_total", "", &made, pods),
        ("kubelet_runtime_operations_duration_seconds", "_count", &made, pods),
        ("kubelet_containers_per_pod_count", "_sum", &[], pods),
        ("kubelet_orphaned_runtime_pods_total", "", &[], 0.0),
        ("kubelet_sleep_action_terminated_early_total", "", &[], load.deleted),
        ("kubelet_lifecycle_handler_http_fallbacks_total", "", &[], 0.0),
        ("kubelet_started_user_namespaced_pods_total", "", &[], 0.0),
        ("kubelet_started_user_namespaced_pods_errors_total", "", &[], 0.0),
        ("kubelet_image_volume_requested_total", "", &[], load.image_volumes),
        ("kubelet_image_volume_mounted_succeed_total", "", &[], load.image_volumes),
        ("kubelet_image_volume_mounted_errors_total", "", &[], 0.0),
        ("kubelet_admission_rejections_total", "", &["reason=\"OutOfcpu\""], load.rejected),
    ];
    for (family, suffix, labels, known) in rows {
        sources.equal(family, grown.of(&format!("{family}{suffix}"), labels), known)?;
    }
    // Each pod is created once; what is repeated has no upper bound but the time.
    let rows: [(&str, &[&str], f64); 4] = [
        ("kubelet_pod_worker_duration_seconds", &["operation_type=\"create\""], pods),
        ("kubelet_pod_worker_start_duration_seconds", &[], pods),
        ("kubelet_pod_status_sync_duration_seconds", &[], created),
        ("kubelet_cgroup_manager_duration_seconds", &["operation_type=\"create\""], pods),
    ];
    for (family, labels, known) in rows {
        let count = grown.of(&format!("{family}_count"), labels);
        sources.between(family, count, known, known * waited)?;
        let sum = grown.of(&format!("{family}_sum"), labels);
        ensure!(sum <= count * waited, "{family}: {sum} s of {count} in {waited} s");
    }
    compare_starts(sources, load, grown, waited)?;
    compare_images(sources, load, grown)
}

/// A pod that ends at once may never be seen running.
fn compare_starts(
    sources: &mut SecondSources,
    load: &KnownLoad,
    grown: &Growth<'_>,
    waited: f64,
) -> Result<()> {
    let running = load.running + load.deleted;
    for family in [
        "kubelet_pod_start_duration_seconds",
        "kubelet_pod_start_total_duration_seconds",
        "kubelet_pod_start_sli_duration_seconds",
    ] {
        let count = grown.of(&format!("{family}_count"), &[]);
        sources.between(family, count, running, running + load.ended)?;
        let sum = grown.of(&format!("{family}_sum"), &[]);
        // Creation times are whole seconds.
        ensure!(sum <= count * (waited + 1.0), "{family}: {sum} s in {waited} s");
    }
    let name = "kubelet_first_network_pod_start_sli_duration_seconds";
    sources.between(name, grown.after.value(name, &[])?, 0.0, waited + 1.0)
}

fn compare_images(sources: &mut SecondSources, load: &KnownLoad, grown: &Growth<'_>) -> Result<()> {
    let present = ["present_locally=\"true\"", "pull_required=\"false\""];
    let name = "kubelet_image_manager_ensure_image_requests_total";
    let known = load.started() + load.image_volumes;
    sources.equal(name, grown.of(name, &present), known)?;
    // The rig imported them: no kubelet pulled them.
    let name = "kubelet_imagemanager_image_mustpull_checks_total";
    sources.equal(name, grown.of(name, &["result=\"credentialPolicyAllowed\""]), known)
}

/// The plugins note their executions. A try of the pull may begin between the two looks.
pub(super) fn compare_plugins(
    sources: &mut SecondSources,
    plugins: &NotingPlugins,
    before: [f64; 2],
    after: &Scrape,
) -> Result<()> {
    let answering = format!("plugin_name=\"{ANSWERING}\"");
    let failing = format!("plugin_name=\"{FAILING}\"");
    let name = "kubelet_credential_provider_plugin_duration";
    let count = after.value(&format!("{name}_count"), &[&answering])?;
    // One that has noted its execution may not have ended yet.
    sources.between(name, count, before[0] - 1.0, plugins.executions(ANSWERING)?)?;
    ensure!(count >= 1.0, "a plugin was executed");
    let name = "kubelet_credential_provider_plugin_errors_total";
    let count = after.value(name, &[&failing])?;
    sources.between(name, count, before[1] - 1.0, plugins.executions(FAILING)?)?;
    let name = "kubelet_credential_provider_config_info";
    let hash = format!("hash=\"{}\"", plugins.hash()?);
    sources.equal(name, after.value(name, &[&hash])?, 1.0)
}

/// Gauges of pods, by the API server and the runtime, which know of a change before the agent does or after it.
pub(super) async fn compare_gauges(
    sources: &mut SecondSources,
    cx: &ScenarioContext,
    cluster: &TestCluster,
) -> Result<()> {
    let look = async || gauges(cx, cluster).await;
    let is_equal = |rows: &Vec<GaugeRow>| rows.iter().all(|(_, shown, known)| shown == known);
    let rows = eventually(MAX_WAIT, "gauges are what is known", look, is_equal).await?;
    rows.into_iter().try_for_each(|(family, shown, known)| sources.equal(family, shown, known))
}

/// A family with what it shows and what is known.
type GaugeRow = (&'static str, f64, f64);

async fn gauges(cx: &ScenarioContext, cluster: &TestCluster) -> Result<Vec<GaugeRow>> {
    let pods = cluster.pods().await?;
    let count = |is_one: fn(&Value) -> bool| pods.iter().filter(|pod| is_one(pod)).count() as f64;
    let phase = |pod: &Value| pod["status"]["phase"].as_str().unwrap_or_default().to_owned();
    let over = pods.iter().filter(|pod| ["Failed", "Succeeded"].contains(&phase(pod).as_str()));
    let active = (pods.len() - over.count()) as f64;
    let seen = cx.inspector().pods().await?;
    let sandboxes = seen.iter().filter(|pod| pod.sandboxes.iter().any(|it| it.is_ready)).count();
    let containers = seen.iter().flat_map(|pod| &pod.containers);
    let containers = containers.filter(|container| container.is_running()).count();
    let name = format!("node=\"{}\"", cluster.agent.name());
    let local = "plugin_name=\"kubernetes.io/local-volume\"";
    let rows: [(&'static str, &[&str], f64); 10] = [
        ("kubelet_node_name", &[&name], 1.0),
        ("kubelet_running_pods", &[], sandboxes as f64),
        ("kubelet_running_containers", &["container_state=\"running\""], containers as f64),
        ("kubelet_desired_pods", &["static=\"\""], pods.len() as f64),
        ("kubelet_active_pods", &["static=\"\""], active),
        ("kubelet_working_pods", &["lifecycle=\"sync\"", "config=\"desired\""], active),
        ("kubelet_mirror_pods", &[], count(is_mirror)),
        ("kubelet_managed_ephemeral_containers", &[], count(is_debugged)),
        ("volume_manager_total_volumes", &[local, "state=\"actual_state_of_world\""], 1.0),
        ("volume_manager_total_volumes", &[local, "state=\"desired_state_of_world\""], 1.0),
    ];
    let now = Scrape::of(cluster, "/metrics").await?;
    let shown = |(family, labels, known): (&'static str, &[&str], f64)| {
        Ok((family, now.value(family, labels)?, known))
    };
    rows.into_iter().map(shown).collect()
}

fn is_mirror(pod: &Value) -> bool {
    !pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null()
}

fn is_debugged(pod: &Value) -> bool {
    !pod["spec"]["ephemeralContainers"].is_null()
}

/// Records of pulls and the size of the claim, by the disk.
pub(super) async fn compare_disks(
    sources: &mut SecondSources,
    cluster: &TestCluster,
    disk: &Path,
) -> Result<()> {
    let place = cluster.agent.root().join("image_manager");
    // No image is pulled here: a record of one that is not there stays, as it cannot be read.
    fs::write(place.join("pulled").join(format!("sha256-{}", "0".repeat(64))), "none")?;
    let now = Scrape::of(cluster, "/metrics").await?;
    let files = |name: &str| Ok::<_, anyhow::Error>(fs::read_dir(place.join(name))?.count() as f64);
    let name = "kubelet_imagemanager_ondisk_pulledrecords";
    sources.equal(name, now.value(name, &[])?, files("pulled")?)?;
    let name = "kubelet_imagemanager_ondisk_pullintents";
    // A try of the pull that fails writes one and removes it.
    sources.between(name, now.value(name, &[])?, 0.0, files("pulling")?.max(1.0))?;
    let fs = statvfs(disk)?;
    let block = fs.f_frsize as f64;
    let rows = [
        ("capacity_bytes", fs.f_blocks as f64 * block, 0.0),
        ("available_bytes", fs.f_bavail as f64 * block, SPARE_BYTES),
        ("used_bytes", (fs.f_blocks - fs.f_bfree) as f64 * block, SPARE_BYTES),
        ("inodes", fs.f_files as f64, SPARE_INODES),
        ("inodes_free", fs.f_ffree as f64, SPARE_INODES),
        ("inodes_used", fs.f_files.saturating_sub(fs.f_ffree) as f64, SPARE_INODES),
    ];
    let claim = format!("persistentvolumeclaim=\"{CLAIM}\"");
    for (name, known, spare) in rows {
        let family = format!("kubelet_volume_stats_{name}");
        let shown = now.value(&family, &["namespace=\"default\"", &claim])?;
        sources.between(&family, shown, known - spare, known + spare)?;
    }
    compare_summary(cluster, fs.f_blocks as f64 * block).await
}

async fn compare_summary(cluster: &TestCluster, capacity: f64) -> Result<()> {
    let summary: Value = serde_json::from_str(&text(cluster, "/stats/summary").await?)?;
    let pods = summary["pods"].as_array().context("a summary has pods")?;
    let pod = pods.iter().find(|pod| pod["podRef"]["name"] == "claimed");
    let volumes = pod.and_then(|pod| pod["volume"].as_array()).context("it has volumes")?;
    let volume = volumes.iter().find(|volume| volume["pvcRef"]["name"] == CLAIM);
    let volume = volume.with_context(|| format!("no volume has a pvcRef: {volumes:?}"))?;
    ensure!(volume["name"] == "disk" && volume["pvcRef"]["namespace"] == "default", "{volume:#}");
    ensure!(volume["capacityBytes"].as_f64() == Some(capacity), "{volume:#} of {capacity}");
    Ok(())
}
