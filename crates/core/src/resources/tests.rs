//! Facts about numbers: one row, one pod.

mod containers;
mod groups;
mod names;
mod oom;
mod sandboxes;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};

use super::*;
use crate::pod::PodExt;

pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;

pub(super) fn pod(spec: &Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p", "uid": "u-1"}, "spec": spec})).unwrap()
}

/// A pod with one container for each of the resources, named `c0` and so on.
pub(super) fn containers(resources: &[Value]) -> Value {
    let named = |(i, r)| json!({"name": format!("c{i}"), "resources": r});
    json!({"containers": resources.iter().enumerate().map(named).collect::<Vec<_>>()})
}

pub(super) fn with(mut spec: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

pub(super) fn named(pod: &Pod, name: &str) -> Container {
    pod.container(name).unwrap().spec.into_owned()
}

pub(super) fn node() -> NodeResources {
    NodeResources::of_memory(8 * GIB)
}

#[test]
fn shares_are_in_proportion_to_cpu_between_the_bounds_of_the_kernel() {
    let rows = [
        (-1, 2),
        (0, 2),
        (1, 2),
        (2, 2),
        (3, 3),
        (100, 102),
        (1000, 1024),
        (1500, 1536),
        (256_000, 262_144),
        (300_000, 262_144),
        (i64::MAX, 262_144),
    ];
    for (millis, expected) in rows {
        assert_eq!(shares(millis), expected, "{millis}m");
    }
}

#[test]
fn a_quota_is_in_proportion_to_cpu_and_a_millisecond_at_least() {
    let rows = [
        (0, 100_000, None),
        (1, 100_000, Some(1000)),
        (10, 100_000, Some(1000)),
        (11, 100_000, Some(1100)),
        (500, 100_000, Some(50_000)),
        (2500, 100_000, Some(250_000)),
        (500, 10_000, Some(5000)),
        (500, 1000, Some(1000)),
    ];
    for (millis, period, expected) in rows {
        assert_eq!(quota(millis, period), expected, "{millis}m in {period}");
    }
}

#[test]
fn weights_of_v2_span_what_shares_of_v1_do() {
    let rows = [(0, 1), (2, 1), (102, 4), (1024, 39), (262_144, 10_000), (u64::MAX, 10_000)];
    for (shares, expected) in rows {
        assert_eq!(weight(shares), expected, "{shares}");
    }
}

#[test]
fn sizes_of_huge_pages_are_spelled_in_three_ways() {
    let rows = [
        ("hugepages-64Ki", "hugepages-64kB", 65_536, "64KB"),
        ("hugepages-2Mi", "hugepages-2048kB", 2 * MIB, "2MB"),
        ("hugepages-32Mi", "hugepages-32768kB", 32 * MIB, "32MB"),
        ("hugepages-1Gi", "hugepages-1048576kB", GIB, "1GB"),
        ("hugepages-16Gi", "hugepages-16777216kB", 16 * GIB, "16GB"),
    ];
    for (resource, directory, bytes, text) in rows {
        assert_eq!(hugepages::size_of_resource(resource), Some(bytes), "{resource}");
        assert_eq!(hugepages::size_of_directory(directory), Some(bytes), "{directory}");
        assert_eq!(hugepages::size_text(bytes), text);
    }
    for other in ["cpu", "hugepages-", "hugepages-x", "hugepages-0", "hugepages--2Mi"] {
        assert_eq!(hugepages::size_of_resource(other), None, "{other}");
        assert_eq!(hugepages::size_of_directory(other), None, "{other}");
    }
}
