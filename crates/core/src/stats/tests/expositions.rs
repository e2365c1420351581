//! The text of both metrics endpoints.

use super::super::*;
use super::fixture::snapshot;

const POD: &str = r#"namespace="shop",pod="web""#;
const MAIN: &str = r#"container="main",id="/kubepods/pod1/aaa",image="example.org/web:1",name="aaa",namespace="shop",pod="web""#;
const SANDBOX: &str =
    r#"container="",id="/kubepods/pod1/bbb",image="",name="bbb",namespace="shop",pod="web""#;
const POD_GROUP: &str =
    r#"container="",id="/kubepods/pod1",image="",name="",namespace="shop",pod="web""#;
const ROOT: &str = r#"container="",id="/",image="",name="",namespace="",pod="""#;

/// The samples of one family, without its name.
fn samples<'a>(text: &'a str, family: &str) -> Vec<&'a str> {
    let sample = |line: &'a str| {
        let rest = line.strip_prefix(family)?;
        rest.starts_with(['{', ' ']).then_some(rest)
    };
    text.lines().filter_map(sample).collect()
}

fn families(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
}

#[test]
fn resource_metrics_have_the_time_at_which_they_were_read() {
    let text = resource_metrics(Some(&snapshot()));
    let expected = [
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
        "container_swap_limit_bytes",
        "container_swap_usage_bytes",
        "container_start_time_seconds",
        "node_cpu_usage_seconds_total",
        "node_memory_working_set_bytes",
        "node_swap_usage_bytes",
        "pod_cpu_usage_seconds_total",
        "pod_memory_working_set_bytes",
        "pod_swap_usage_bytes",
        "resource_scrape_error",
        "scrape_error",
    ];
    assert_eq!(families(&text), expected);
    let main = format!(r#"{{container="main",{POD}}}"#);
    let rows = [
        ("container_cpu_usage_seconds_total", format!("{main} 20 1000000")),
        ("container_memory_working_set_bytes", format!("{main} {} 1000000", 19 << 20)),
        ("container_swap_limit_bytes", format!("{main} 100 1000000")),
        ("container_swap_usage_bytes", format!("{main} 24 1000000")),
        ("container_start_time_seconds", format!("{main} 500")),
        ("node_cpu_usage_seconds_total", " 100 1000000".to_owned()),
        ("node_memory_working_set_bytes", format!(" {} 1000000", 99 << 20)),
        ("node_swap_usage_bytes", " 1024 1000000".to_owned()),
        ("pod_cpu_usage_seconds_total", format!("{{{POD}}} 30 1000000")),
        ("pod_memory_working_set_bytes", format!("{{{POD}}} {} 1000000", 29 << 20)),
        ("pod_swap_usage_bytes", format!("{{{POD}}} 34 1000000")),
        ("resource_scrape_error", " 0".to_owned()),
    ];
    for (family, expected) in rows {
        assert_eq!(samples(&text, family), [expected], "{family}");
    }
}

#[test]
fn a_node_that_could_not_be_measured_has_only_an_error() {
    let text = resource_metrics(None);
    assert_eq!(families(&text), ["resource_scrape_error", "scrape_error"]);
    assert_eq!(samples(&text, "scrape_error"), [" 1"]);
}

#[test]
fn cadvisor_metrics_have_all_labels_on_every_series() {
    let text = cadvisor_metrics(&snapshot());
    let groups = r#"container="",id="/kubepods",image="",name="",namespace="",pod="""#;
    let expected: Vec<String> =
        [(ROOT, 100), (groups, 40), (POD_GROUP, 30), (SANDBOX, 2), (MAIN, 20)]
            .iter()
            .map(|(labels, cpu)| format!(r#"{{{labels},cpu="total"}} {cpu} 1000000"#))
            .collect();
    assert_eq!(samples(&text, "container_cpu_usage_seconds_total"), expected);
}

#[test]
fn cadvisor_metrics_show_each_number_under_its_usual_name() {
    let text = cadvisor_metrics(&snapshot());
    let rows = [
        ("container_cpu_user_seconds_total", "12"),
        ("container_cpu_system_seconds_total", "8"),
        ("container_cpu_cfs_periods_total", "30"),
        ("container_cpu_cfs_throttled_periods_total", "25"),
        ("container_cpu_cfs_throttled_seconds_total", "1.5"),
        ("container_memory_usage_bytes", "20971520"),
        ("container_memory_working_set_bytes", "19922944"),
        ("container_memory_rss", "21"),
        ("container_memory_cache", "22"),
        ("container_memory_mapped_file", "23"),
        ("container_memory_swap", "24"),
        ("container_processes", "20"),
        ("container_threads", "40"),
        ("container_threads_max", "0"),
        ("container_spec_cpu_period", "100000"),
        ("container_spec_cpu_shares", "512"),
        ("container_spec_memory_limit_bytes", "67108864"),
        ("container_spec_memory_swap_limit_bytes", "100"),
        ("container_pressure_cpu_waiting_seconds_total", "2.5"),
        ("container_pressure_cpu_stalled_seconds_total", "0"),
        ("container_start_time_seconds", "500"),
        ("container_last_seen", "1000"),
    ];
    for (family, value) in rows {
        let expected = format!("{{{MAIN}}} {value} 1000000");
        assert!(
            samples(&text, family).contains(&expected.as_str()),
            "{family}: {expected}\n{text}"
        );
    }
}

#[test]
fn what_the_kernel_does_not_tell_has_no_series() {
    let text = cadvisor_metrics(&snapshot());
    let absent = [
        "container_memory_max_usage_bytes",
        "container_memory_failcnt",
        "container_oom_events_total",
        "container_spec_cpu_quota",
        "container_pressure_io_waiting_seconds_total",
    ];
    for family in absent {
        assert!(!families(&text).contains(&family), "{family}");
    }
    assert_eq!(samples(&text, "container_pressure_cpu_waiting_seconds_total").len(), 1);
}

#[test]
fn faults_devices_interfaces_and_file_systems_have_labels_of_their_own() {
    let text = cadvisor_metrics(&snapshot());
    let rows = [
        (
            "container_memory_failures_total",
            MAIN,
            r#"failure_type="pgfault",scope="container""#,
            "26",
        ),
        (
            "container_memory_failures_total",
            MAIN,
            r#"failure_type="pgfault",scope="hierarchy""#,
            "28",
        ),
        (
            "container_memory_failures_total",
            MAIN,
            r#"failure_type="pgmajfault",scope="container""#,
            "27",
        ),
        (
            "container_memory_failures_total",
            MAIN,
            r#"failure_type="pgmajfault",scope="hierarchy""#,
            "29",
        ),
        ("container_fs_reads_bytes_total", MAIN, r#"device="/dev/vda""#, "4096"),
        ("container_fs_reads_total", MAIN, r#"device="/dev/vda""#, "1"),
        ("container_fs_writes_bytes_total", MAIN, r#"device="/dev/vda""#, "0"),
        ("container_fs_limit_bytes", ROOT, r#"device="254:1""#, "1000000"),
        ("container_fs_usage_bytes", ROOT, r#"device="254:1""#, "300000"),
        ("container_network_receive_bytes_total", ROOT, r#"interface="eth0""#, "900"),
        ("container_network_receive_bytes_total", SANDBOX, r#"interface="eth0""#, "70"),
        ("container_network_transmit_bytes_total", SANDBOX, r#"interface="eth1""#, "71"),
    ];
    for (family, labels, own, value) in rows {
        let expected = format!("{{{labels},{own}}} {value} 1000000");
        assert!(
            samples(&text, family).contains(&expected.as_str()),
            "{family}: {expected}\n{text}"
        );
    }
    assert_eq!(samples(&text, "container_fs_usage_bytes").len(), 1, "one file system, shown once");
    let received = samples(&text, "container_network_receive_bytes_total");
    assert_eq!(received.len(), 4, "of the machine and of the sandbox alone: {received:?}");
    assert_eq!(samples(&text, "machine_cpu_cores"), [" 2"]);
    assert_eq!(samples(&text, "machine_memory_bytes"), [" 1073741824"]);
    assert_eq!(samples(&text, "machine_swap_bytes"), [" 2048"]);
}

#[test]
fn without_a_sandbox_the_pod_has_its_interfaces() {
    let mut snapshot = snapshot();
    snapshot.pods[0].sandboxes.clear();
    let text = cadvisor_metrics(&snapshot);
    let expected = format!(r#"{{{POD_GROUP},interface="eth0"}} 70 1000000"#);
    assert!(samples(&text, "container_network_receive_bytes_total").contains(&expected.as_str()));
}
