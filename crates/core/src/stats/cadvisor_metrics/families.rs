//! The families of numbers that every control group has, one row each.

use crate::exposition::MetricKind;

use super::super::cgroup_stats::{CgroupStats, DeviceIo, NANOS_PER_SECOND};
use super::super::pressure::Pressure;
use super::super::proc_files::InterfaceCounters;

const MICROS_PER_SECOND: f64 = 1e6;

/// A family with one value for each group.
pub(in crate::stats) struct GroupFamily {
    pub(in crate::stats) name: &'static str,
    pub(in crate::stats) kind: MetricKind,
    pub(in crate::stats) help: &'static str,
    /// Labels after those of the group.
    pub(in crate::stats) labels: &'static [(&'static str, &'static str)],
    /// None where the kernel does not tell, which leaves the series out.
    pub(in crate::stats) value: fn(&CgroupStats) -> Option<f64>,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&CgroupStats) -> Option<f64>,
) -> GroupFamily {
    GroupFamily { name, kind: MetricKind::Counter, help, labels: &[], value }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    value: fn(&CgroupStats) -> Option<f64>,
) -> GroupFamily {
    GroupFamily { name, kind: MetricKind::Gauge, help, labels: &[], value }
}

pub(in crate::stats) const GROUP_FAMILIES: &[GroupFamily] = &[
    GroupFamily {
        labels: &[("cpu", "total")],
        ..counter("container_cpu_usage_seconds_total", "CPU time in core-seconds.", |group| {
            nanos(group.cpu?.total)
        })
    },
    counter(
        "container_cpu_user_seconds_total",
        "CPU time in user mode in core-seconds.",
        |group| nanos(group.cpu?.user?),
    ),
    counter(
        "container_cpu_system_seconds_total",
        "CPU time in the kernel in core-seconds.",
        |group| nanos(group.cpu?.system?),
    ),
    counter(
        "container_cpu_cfs_periods_total",
        "Periods of the CPU quota with something to run.",
        |group| count(group.throttling?.periods),
    ),
    counter(
        "container_cpu_cfs_throttled_periods_total",
        "Periods in which the CPU quota was used up.",
        |group| count(group.throttling?.throttled_periods),
    ),
    counter(
        "container_cpu_cfs_throttled_seconds_total",
        "How long tasks waited because the CPU quota was used up, in seconds.",
        |group| nanos(group.throttling?.throttled),
    ),
    gauge("container_memory_usage_bytes", "Memory in bytes, that of files included.", |group| {
        group.of_memory(|memory| Some(memory.usage))
    }),
    gauge(
        "container_memory_working_set_bytes",
        "Memory in bytes without file pages that have not been used for some time.",
        |group| group.of_memory(|memory| Some(memory.working_set())),
    ),
    gauge("container_memory_rss", "Anonymous memory in bytes.", |group| {
        group.of_memory(|memory| Some(memory.rss))
    }),
    gauge("container_memory_cache", "Memory of files in bytes.", |group| {
        group.of_memory(|memory| Some(memory.cache))
    }),
    gauge("container_memory_mapped_file", "Memory of mapped files in bytes.", |group| {
        group.of_memory(|memory| Some(memory.mapped_file))
    }),
    gauge("container_memory_swap", "What is swapped out, in bytes.", |group| {
        group.of_memory(|memory| Some(memory.swap))
    }),
    gauge(
        "container_memory_max_usage_bytes",
        "The most memory there ever was, in bytes.",
        |group| group.of_memory(|memory| memory.max_usage),
    ),
    counter("container_memory_failcnt", "How often the limit of memory was reached.", |group| {
        group.of_memory(|memory| memory.fail_count)
    }),
    counter("container_oom_events_total", "Processes killed for lack of memory.", |group| {
        count(group.oom_kills?)
    }),
    gauge("container_processes", "Processes.", |group| count(group.processes?)),
    gauge("container_threads", "Threads.", |group| count(group.threads?)),
    gauge("container_threads_max", "The most threads there may be; 0 for no limit.", |group| {
        count(group.max_threads?)
    }),
    gauge("container_spec_cpu_period", "The period of the CPU quota in microseconds.", |group| {
        count(group.cpu_limits?.period?)
    }),
    gauge("container_spec_cpu_quota", "CPU time in each period in microseconds.", |group| {
        count(group.cpu_limits?.quota?)
    }),
    gauge("container_spec_cpu_shares", "The weight among other groups, in shares.", |group| {
        count(group.cpu_limits?.shares?)
    }),
    gauge(
        "container_spec_memory_limit_bytes",
        "The limit of memory in bytes; 0 for none.",
        |group| group.of_memory(|memory| Some(memory.limit.unwrap_or_default())),
    ),
    gauge("container_spec_memory_swap_limit_bytes", "The limit of swap in bytes.", |group| {
        group.of_memory(|memory| memory.swap_limit)
    }),
    counter("container_pressure_cpu_waiting_seconds_total", WAITING, |group| {
        waiting(group.pressure.cpu)
    }),
    counter("container_pressure_cpu_stalled_seconds_total", STALLED, |group| {
        stalled(group.pressure.cpu)
    }),
    counter("container_pressure_memory_waiting_seconds_total", WAITING, |group| {
        waiting(group.pressure.memory)
    }),
    counter("container_pressure_memory_stalled_seconds_total", STALLED, |group| {
        stalled(group.pressure.memory)
    }),
    counter("container_pressure_io_waiting_seconds_total", WAITING, |group| {
        waiting(group.pressure.io)
    }),
    counter("container_pressure_io_stalled_seconds_total", STALLED, |group| {
        stalled(group.pressure.io)
    }),
];

const WAITING: &str = "Seconds in which at least one task waited for this resource.";
const STALLED: &str = "Seconds in which all tasks waited for this resource.";

type IoFamily = (&'static str, &'static str, fn(&DeviceIo) -> u64);

pub(in crate::stats) const IO_FAMILIES: [IoFamily; 4] = [
    ("container_fs_reads_bytes_total", "Bytes read from the device.", |io| io.read_bytes),
    ("container_fs_reads_total", "Read requests to the device.", |io| io.reads),
    ("container_fs_writes_bytes_total", "Bytes written to the device.", |io| io.written_bytes),
    ("container_fs_writes_total", "Write requests to the device.", |io| io.writes),
];

type InterfaceFamily = (&'static str, &'static str, fn(&InterfaceCounters) -> u64);

pub(in crate::stats) const INTERFACE_FAMILIES: [InterfaceFamily; 8] = [
    ("container_network_receive_bytes_total", "Bytes received.", |it| it.rx_bytes),
    ("container_network_receive_errors_total", "Errors while receiving.", |it| it.rx_errors),
    (
        "container_network_receive_packets_dropped_total",
        "Received packets that were dropped.",
        |it| it.rx_dropped,
    ),
    ("container_network_receive_packets_total", "Packets received.", |it| it.rx_packets),
    ("container_network_transmit_bytes_total", "Bytes sent.", |it| it.tx_bytes),
    ("container_network_transmit_errors_total", "Errors while sending.", |it| it.tx_errors),
    (
        "container_network_transmit_packets_dropped_total",
        "Packets to send that were dropped.",
        |it| it.tx_dropped,
    ),
    ("container_network_transmit_packets_total", "Packets sent.", |it| it.tx_packets),
];

fn nanos(nanos: u64) -> Option<f64> {
    Some(nanos as f64 / NANOS_PER_SECOND)
}

fn count(count: u64) -> Option<f64> {
    Some(count as f64)
}

fn waiting(pressure: Option<Pressure>) -> Option<f64> {
    Some(pressure?.some.total as f64 / MICROS_PER_SECOND)
}

fn stalled(pressure: Option<Pressure>) -> Option<f64> {
    Some(pressure?.full.total as f64 / MICROS_PER_SECOND)
}
