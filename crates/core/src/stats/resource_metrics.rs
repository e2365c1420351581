//! `/metrics/resource`: CPU time, memory and swap of node, pods and containers, which metrics-server reads.

use jiff::Timestamp;

use crate::exposition::{Exposition, MetricFamily, MetricKind};

use super::cgroup_stats::{CgroupStats, NANOS_PER_SECOND};
use super::snapshot::{MeasuredContainer, MeasuredPod, StatsSnapshot};

/// The value of one family for a group.
type GroupValue = fn(&CgroupStats) -> Option<f64>;

/// The text; without a snapshot, because the node could not be measured, only that there was an error.
pub fn resource_metrics(snapshot: Option<&StatsSnapshot>) -> String {
    let mut exposition = Exposition::default();
    if let Some(snapshot) = snapshot {
        add_containers(&mut exposition, snapshot);
        add_node(&mut exposition, snapshot);
        add_pods(&mut exposition, snapshot);
    }
    let error = if snapshot.is_some() { 0.0 } else { 1.0 };
    let help = "1 if the node could not be measured, else 0.";
    exposition.single("resource_scrape_error", MetricKind::Gauge, help, error);
    exposition.single("scrape_error", MetricKind::Gauge, help, error);
    exposition.into_text()
}

fn add_containers(exposition: &mut Exposition, snapshot: &StatsSnapshot) {
    let rows: [(&str, MetricKind, &str, GroupValue); 4] = [
        (
            "container_cpu_usage_seconds_total",
            MetricKind::Counter,
            "CPU time of the container in core-seconds.",
            cpu_seconds,
        ),
        (
            "container_memory_working_set_bytes",
            MetricKind::Gauge,
            "Working set of the container in bytes.",
            working_set,
        ),
        (
            "container_swap_limit_bytes",
            MetricKind::Gauge,
            "The most the container may swap, in bytes.",
            |stats| stats.of_memory(|memory| memory.swap_limit),
        ),
        (
            "container_swap_usage_bytes",
            MetricKind::Gauge,
            "What is swapped out of the container, in bytes.",
            swap,
        ),
    ];
    for (name, kind, help, value) in rows {
        let mut family = exposition.family(name, kind, help);
        for (pod, container) in containers(snapshot) {
            add(&mut family, &container_labels(pod, container), &container.cgroup.stats, value);
        }
    }
    let help = "When the container was started, in seconds since 1970.";
    let mut family = exposition.family("container_start_time_seconds", MetricKind::Gauge, help);
    for (pod, container) in containers(snapshot) {
        if let Some(started) = container.cgroup.started {
            family.sample(&container_labels(pod, container), seconds(started));
        }
    }
}

fn add_node(exposition: &mut Exposition, snapshot: &StatsSnapshot) {
    let rows: [(&str, MetricKind, &str, GroupValue); 2] = [
        (
            "node_cpu_usage_seconds_total",
            MetricKind::Counter,
            "CPU time of the node in core-seconds.",
            cpu_seconds,
        ),
        (
            "node_memory_working_set_bytes",
            MetricKind::Gauge,
            "Working set of the node in bytes.",
            working_set,
        ),
    ];
    for (name, kind, help, value) in rows {
        let mut family = exposition.family(name, kind, help);
        if let Some(root) = &snapshot.root {
            add(&mut family, &[], &root.stats, value);
        }
    }
    let memory = &snapshot.machine.memory;
    let swap = memory.swap_total.saturating_sub(memory.swap_free) as f64;
    let help = "What is swapped out of the node, in bytes.";
    let mut family = exposition.family("node_swap_usage_bytes", MetricKind::Gauge, help);
    family.sample_at(&[], swap, snapshot.at);
}

fn add_pods(exposition: &mut Exposition, snapshot: &StatsSnapshot) {
    let rows: [(&str, MetricKind, &str, GroupValue); 3] = [
        (
            "pod_cpu_usage_seconds_total",
            MetricKind::Counter,
            "CPU time of the pod in core-seconds.",
            cpu_seconds,
        ),
        (
            "pod_memory_working_set_bytes",
            MetricKind::Gauge,
            "Working set of the pod in bytes.",
            working_set,
        ),
        (
            "pod_swap_usage_bytes",
            MetricKind::Gauge,
            "What is swapped out of the pod, in bytes.",
            swap,
        ),
    ];
    for (name, kind, help, value) in rows {
        let mut family = exposition.family(name, kind, help);
        for pod in &snapshot.pods {
            let labels = [("namespace", pod.namespace.as_str()), ("pod", &pod.name)];
            add(&mut family, &labels, &pod.cgroup.stats, value);
        }
    }
}

fn containers(
    snapshot: &StatsSnapshot,
) -> impl Iterator<Item = (&MeasuredPod, &MeasuredContainer)> {
    snapshot.pods.iter().flat_map(|pod| pod.containers.iter().map(move |it| (pod, it)))
}

fn container_labels<'a>(
    pod: &'a MeasuredPod,
    container: &'a MeasuredContainer,
) -> [(&'static str, &'a str); 3] {
    [("container", &container.name), ("namespace", &pod.namespace), ("pod", &pod.name)]
}

fn add(
    family: &mut MetricFamily<'_>,
    labels: &[(&str, &str)],
    stats: &CgroupStats,
    value: GroupValue,
) {
    if let Some(value) = value(stats) {
        family.sample_at(labels, value, stats.at.wall);
    }
}

fn cpu_seconds(stats: &CgroupStats) -> Option<f64> {
    Some(stats.cpu?.total as f64 / NANOS_PER_SECOND)
}

fn working_set(stats: &CgroupStats) -> Option<f64> {
    stats.of_memory(|memory| Some(memory.working_set()))
}

fn swap(stats: &CgroupStats) -> Option<f64> {
    stats.of_memory(|memory| Some(memory.swap))
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1e3
}
