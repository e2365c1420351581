//! The JSON of `/stats/summary` for known numbers.

use serde_json::{Value, json};

use super::super::*;
use super::fixture::snapshot;

fn memory(base: u64, available: Value) -> Value {
    let mut shown = json!({
        "time": "1970-01-01T00:16:40Z",
        "usageBytes": base << 20,
        "workingSetBytes": (base - 1) << 20,
        "rssBytes": base + 1,
        "pageFaults": base + 6,
        "majorPageFaults": base + 7,
    });
    if !available.is_null() {
        shown["availableBytes"] = available;
    }
    shown
}

fn cpu(base: u64) -> Value {
    json!({ "time": "1970-01-01T00:16:40Z", "usageNanoCores": base, "usageCoreNanoSeconds": base * 1_000_000_000 })
}

fn fs(time: &str, used: u64, inodes_used: u64) -> Value {
    json!({
        "time": time, "availableBytes": 600_000, "capacityBytes": 1_000_000, "usedBytes": used,
        "inodesFree": 400, "inodes": 500, "inodesUsed": inodes_used,
    })
}

fn interface(name: &str, base: u64) -> Value {
    json!({ "name": name, "rxBytes": base, "rxErrors": 0, "txBytes": base + 1, "txErrors": 0 })
}

fn network(base: u64) -> Value {
    let mut shown = interface("eth0", base);
    shown["time"] = json!("1970-01-01T00:16:40Z");
    shown["interfaces"] = json!([interface("eth1", base), interface("eth0", base)]);
    shown
}

#[test]
fn the_whole_summary_has_the_fields_of_the_api() {
    let shown = serde_json::to_value(full_summary(&snapshot())).unwrap();
    let (now, counted) = ("1970-01-01T00:16:40Z", "1970-01-01T00:16:30Z");
    let node = &shown["node"];
    assert_eq!(node["nodeName"], "n1");
    assert_eq!(node["startTime"], "1970-01-01T00:01:40Z");
    assert_eq!(node["cpu"], cpu(100));
    assert_eq!(node["memory"], memory(100, json!((1_u64 << 30) - (99 << 20))));
    assert_eq!(
        node["swap"],
        json!({ "time": now, "swapUsageBytes": 1024, "swapAvailableBytes": 1024 })
    );
    assert_eq!(node["network"], network(900));
    assert_eq!(node["fs"], fs(now, 300_000, 100));
    assert_eq!(node["runtime"]["imageFs"], fs(now, 50_000, 60));
    assert_eq!(node["runtime"]["containerFs"], fs(now, 50_000, 60), "one file system for both");
    assert_eq!(node["rlimit"], json!({ "time": now, "maxpid": 32768, "curproc": 94 }));
    let system = &node["systemContainers"];
    assert_eq!(system.as_array().unwrap().len(), 1);
    assert_eq!((&system[0]["name"], &system[0]["cpu"]), (&json!("pods"), &cpu(40)));
    assert_eq!(node.get("io"), None, "the kernel tells of no pressure");

    let pod = &shown["pods"][0];
    assert_eq!(pod["podRef"], json!({ "name": "web", "namespace": "shop", "uid": "1" }));
    assert_eq!(pod["startTime"], "1970-01-01T00:08:20Z");
    assert_eq!(pod["cpu"], cpu(30));
    assert_eq!(pod["memory"], memory(30, Value::Null), "a pod without limit");
    assert_eq!(pod["network"], network(70));
    assert_eq!(pod["process_stats"], json!({ "process_count": 22 }), "container and sandbox");
    assert_eq!(pod["swap"], json!({ "time": now, "swapUsageBytes": 34 }));
    let mut volume = fs(counted, 16_384, 8);
    volume["name"] = json!("data");
    assert_eq!(pod["volume"][0], volume);
    let in_memory = json!({
        "time": counted, "name": "fast", "usedBytes": 1000, "inodesUsed": 3, "capacityBytes": 3000, "availableBytes": 2000,
    });
    assert_eq!(pod["volume"][1], in_memory);
    let of_claim = json!({
        "time": now, "name": "db", "pvcRef": { "name": "db-0", "namespace": "shop" }, "capacityBytes": 5000,
        "availableBytes": 3000, "usedBytes": 1500, "inodes": 40, "inodesFree": 30, "inodesUsed": 10,
    });
    assert_eq!(pod["volume"][2], of_claim);
    let all = 8192 + 4096 + 16_384 + 512;
    assert_eq!(pod["ephemeral-storage"], fs(counted, all, 4 + 2 + 8 + 1), "none of memory");

    let container = &pod["containers"][0];
    assert_eq!((&container["name"], &container["startTime"]), (&json!("main"), &pod["startTime"]));
    assert_eq!(container["memory"], memory(20, json!(45 << 20)), "what is left of the limit");
    assert_eq!(container["swap"]["swapAvailableBytes"], 76);
    assert_eq!(container["rootfs"], fs(now, 8192, 4));
    assert_eq!(container["logs"], fs(counted, 4096, 2));
    let some = json!({ "avg10": 1.5, "avg60": 0.0, "avg300": 0.0, "total": 2_500_000 });
    assert_eq!(container["cpu"]["psi"]["some"], some);
    assert_eq!(container["cpu"]["psi"]["full"]["total"], 0);
}

#[test]
fn only_cpu_and_memory_are_shown_where_nothing_else_is_wanted() {
    let shown = serde_json::to_value(cpu_and_memory_summary(&snapshot())).unwrap();
    for field in ["network", "fs", "runtime", "rlimit", "io"] {
        assert_eq!(shown["node"].get(field), None, "{field}");
    }
    let pod = &shown["pods"][0];
    for field in ["network", "volume", "ephemeral-storage", "process_stats"] {
        assert_eq!(pod.get(field), None, "{field}");
    }
    for field in ["rootfs", "logs"] {
        assert_eq!(pod["containers"][0].get(field), None, "{field}");
    }
    assert_eq!(pod["containers"][0]["cpu"]["usageNanoCores"], 20);
}

#[test]
fn what_was_not_measured_is_absent() {
    let mut snapshot = snapshot();
    snapshot.root = None;
    (snapshot.node_fs, snapshot.image_fs) = (None, None);
    let pod = &mut snapshot.pods[0];
    (pod.volumes, pod.other_files, pod.counted) = (None, None, None);
    pod.claims.clear();
    (pod.containers[0].writable_layer, pod.containers[0].logs) = (None, None);
    (pod.cgroup.stats.cpu, pod.cgroup.nano_cores, pod.interfaces) = (None, None, None);
    let shown = serde_json::to_value(full_summary(&snapshot)).unwrap();
    for field in ["cpu", "memory", "fs", "runtime"] {
        assert_eq!(shown["node"].get(field), None, "{field}");
    }
    let pod = &shown["pods"][0];
    for field in ["cpu", "network", "volume", "ephemeral-storage"] {
        assert_eq!(pod.get(field), None, "{field}");
    }
    for field in ["rootfs", "logs"] {
        assert_eq!(pod["containers"][0].get(field), None, "{field}");
    }
}

#[test]
fn a_summary_can_be_read_back() {
    let summary = full_summary(&snapshot());
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<StatsSummary>(&text).unwrap(), summary);
}

#[test]
fn a_snapshot_serves_requests_that_need_no_more() {
    use StatsScope::{Containers, CpuAndMemory, Resources, Summary};
    let rows = [
        (Resources, vec![Resources]),
        (CpuAndMemory, vec![Resources, CpuAndMemory]),
        (Containers, vec![Resources, Containers]),
        (Summary, vec![Resources, CpuAndMemory, Summary]),
    ];
    for (had, expected) in rows {
        let all = [Resources, CpuAndMemory, Containers, Summary];
        let covered: Vec<_> = all.into_iter().filter(|scope| had.covers(*scope)).collect();
        assert_eq!(covered, expected, "{had:?}");
    }
}
