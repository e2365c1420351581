//! The numbers of control groups as CRI has metrics: those of `/metrics/cadvisor` in whole numbers, which is all that CRI knows.

use oarsman_cri_types::v1 as cri;

use crate::exposition::MetricKind;

use super::cadvisor_metrics::families::{GROUP_FAMILIES, INTERFACE_FAMILIES};
use super::cgroup_stats::CgroupStats;
use super::proc_files::InterfaceCounters;

/// The labels of every series, in this order, before its own.
const LABELS: [&str; 6] = ["container", "id", "image", "name", "namespace", "pod"];
/// The label of the series of interfaces.
const INTERFACE: &str = "interface";

/// The values of the labels that all series of a container or a pod have. What does not apply is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CriMetricLabels<'a> {
    /// The container's name.
    pub container: &'a str,
    /// The path of the control group.
    pub cgroup: &'a str,
    /// The container's image.
    pub image: &'a str,
    /// The runtime's id of container or sandbox.
    pub id: &'a str,
    /// The pod's namespace.
    pub namespace: &'a str,
    /// The pod's name.
    pub pod: &'a str,
}

impl CriMetricLabels<'_> {
    fn values<'b>(&self, own: impl Iterator<Item = &'b str>) -> Vec<String> {
        let Self { container, cgroup, image, id, namespace, pod } = *self;
        let common = [container, cgroup, image, id, namespace, pod];
        common.into_iter().map(str::to_owned).chain(own.map(str::to_owned)).collect()
    }
}

/// All families, with the names of their labels.
pub fn cri_metric_descriptors() -> Vec<cri::MetricDescriptor> {
    let descriptor = |name: &str, help: &str, own: Vec<&str>| cri::MetricDescriptor {
        name: name.to_owned(),
        help: help.to_owned(),
        label_keys: LABELS.into_iter().chain(own).map(str::to_owned).collect(),
    };
    let groups = GROUP_FAMILIES.iter().map(|family| {
        let own = family.labels.iter().map(|(label, _)| *label).collect();
        descriptor(family.name, family.help, own)
    });
    let interfaces =
        INTERFACE_FAMILIES.iter().map(|(name, help, _)| descriptor(name, help, vec![INTERFACE]));
    groups.chain(interfaces).collect()
}

/// The series of one control group.
pub fn cri_group_metrics(labels: &CriMetricLabels<'_>, stats: &CgroupStats) -> Vec<cri::Metric> {
    let mut metrics = Vec::new();
    for family in GROUP_FAMILIES {
        let Some(value) = (family.value)(stats) else { continue };
        let metric_type = match family.kind {
            MetricKind::Counter | MetricKind::Histogram => cri::MetricType::Counter,
            MetricKind::Gauge => cri::MetricType::Gauge,
        };
        let own = family.labels.iter().map(|(_, value)| *value);
        metrics.push(metric(family.name, metric_type, labels.values(own), (whole(value), stats)));
    }
    metrics
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of control groups are never negative, and CRI has no place for fractions"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

/// The series of the interfaces of a pod, read at the time of its other numbers.
pub fn cri_interface_metrics(
    labels: &CriMetricLabels<'_>,
    interfaces: &[InterfaceCounters],
    stats: &CgroupStats,
) -> Vec<cri::Metric> {
    let mut metrics = Vec::new();
    for (name, _, value) in INTERFACE_FAMILIES {
        for counters in interfaces {
            let labels = labels.values(std::iter::once(counters.name.as_str()));
            metrics.push(metric(name, cri::MetricType::Counter, labels, (value(counters), stats)));
        }
    }
    metrics
}

fn metric(
    name: &str,
    kind: cri::MetricType,
    label_values: Vec<String>,
    (value, stats): (u64, &CgroupStats),
) -> cri::Metric {
    let timestamp = i64::try_from(stats.at.wall.as_nanosecond()).unwrap_or(i64::MAX);
    let value = Some(cri::UInt64Value { value });
    cri::Metric { name: name.to_owned(), timestamp, metric_type: kind.into(), label_values, value }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::super::cgroup_stats::{CpuUsage, MemoryUsage};
    use super::*;
    use crate::time::{Mono, Now};

    fn stats() -> CgroupStats {
        let at = Now { mono: Mono::default(), wall: Timestamp::UNIX_EPOCH };
        CgroupStats {
            cpu: Some(CpuUsage { total: 3_900_000_000, user: None, system: None }),
            memory: Some(MemoryUsage { usage: 4096, ..MemoryUsage::default() }),
            ..CgroupStats::at(at)
        }
    }

    #[test]
    fn every_series_has_a_descriptor_and_a_value_for_each_of_its_labels() {
        let labels = CriMetricLabels { container: "main", pod: "web", ..Default::default() };
        let interfaces = [InterfaceCounters { name: "eth0".to_owned(), ..Default::default() }];
        let mut all = cri_group_metrics(&labels, &stats());
        all.extend(cri_interface_metrics(&labels, &interfaces, &stats()));
        let descriptors: BTreeMap<_, _> =
            cri_metric_descriptors().into_iter().map(|it| (it.name.clone(), it)).collect();
        for metric in &all {
            let keys = &descriptors[&metric.name].label_keys;
            assert_eq!(keys.len(), metric.label_values.len(), "{metric:?}");
            let of =
                |label: &str| &metric.label_values[keys.iter().position(|it| it == label).unwrap()];
            assert_eq!((of("container").as_str(), of("pod").as_str()), ("main", "web"));
        }
        let value = |name: &str| {
            all.iter().find(|metric| metric.name == name).map(|it| it.value.unwrap().value)
        };
        assert_eq!(value("container_cpu_usage_seconds_total"), Some(3));
        assert_eq!(value("container_cpu_user_seconds_total"), None, "what was not read is absent");
        assert_eq!(value("container_memory_usage_bytes"), Some(4096));
        assert_eq!(value("container_network_receive_bytes_total"), Some(0));
    }
}
