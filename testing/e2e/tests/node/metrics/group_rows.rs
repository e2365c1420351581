//! Where the numbers of a container's group are in the files of cgroups v1 and v2.

pub(super) const MIB: f64 = (1 << 20) as f64;

/// A number of a group: its family, its file and key in cgroups v1 and v2, how many of its units are one of the family's, and by how much
/// it may be off.
pub(super) type GroupRow = (&'static str, GroupFile, GroupFile, f64);
/// A file, a key in it, and a unit.
pub(super) type GroupFile = (&'static str, &'static str, f64);

/// A file that the version does not have.
const NONE: GroupFile = ("", "", 1.0);

pub(super) const ROWS: &[GroupRow] = &[
    (
        "container_cpu_usage_seconds_total",
        ("cpuacct.usage", "", 1e9),
        ("cpu.stat", "usage_usec", 1e6),
        1e-6,
    ),
    (
        "container_cpu_user_seconds_total",
        ("cpuacct.stat", "user", 1e2),
        ("cpu.stat", "user_usec", 1e6),
        0.02,
    ),
    (
        "container_cpu_system_seconds_total",
        ("cpuacct.stat", "system", 1e2),
        ("cpu.stat", "system_usec", 1e6),
        0.02,
    ),
    (
        "container_cpu_cfs_periods_total",
        ("cpu.stat", "nr_periods", 1.0),
        ("cpu.stat", "nr_periods", 1.0),
        0.0,
    ),
    (
        "container_cpu_cfs_throttled_periods_total",
        ("cpu.stat", "nr_throttled", 1.0),
        ("cpu.stat", "nr_throttled", 1.0),
        0.0,
    ),
    (
        "container_cpu_cfs_throttled_seconds_total",
        ("cpu.stat", "throttled_time", 1e9),
        ("cpu.stat", "throttled_usec", 1e6),
        1e-6,
    ),
    (
        "container_memory_usage_bytes",
        ("memory.usage_in_bytes", "", 1.0),
        ("memory.current", "", 1.0),
        MIB,
    ),
    ("container_memory_rss", ("memory.stat", "total_rss", 1.0), ("memory.stat", "anon", 1.0), MIB),
    (
        "container_memory_cache",
        ("memory.stat", "total_cache", 1.0),
        ("memory.stat", "file", 1.0),
        MIB,
    ),
    (
        "container_memory_mapped_file",
        ("memory.stat", "total_mapped_file", 1.0),
        ("memory.stat", "file_mapped", 1.0),
        MIB,
    ),
    (
        "container_memory_swap",
        ("memory.stat", "total_swap", 1.0),
        ("memory.swap.current", "", 1.0),
        MIB,
    ),
    ("container_memory_max_usage_bytes", ("memory.max_usage_in_bytes", "", 1.0), NONE, MIB),
    ("container_memory_failcnt", ("memory.failcnt", "", 1.0), ("memory.events", "max", 1.0), 0.0),
    (
        "container_oom_events_total",
        ("memory.oom_control", "oom_kill", 1.0),
        ("memory.events", "oom_kill", 1.0),
        0.0,
    ),
    ("container_threads", ("pids.current", "", 1.0), ("pids.current", "", 1.0), 0.0),
    (
        "container_pressure_cpu_waiting_seconds_total",
        ("cpu.pressure", "some", 1e6),
        ("cpu.pressure", "some", 1e6),
        0.1,
    ),
    (
        "container_pressure_cpu_stalled_seconds_total",
        ("cpu.pressure", "full", 1e6),
        ("cpu.pressure", "full", 1e6),
        0.1,
    ),
    (
        "container_pressure_memory_waiting_seconds_total",
        ("memory.pressure", "some", 1e6),
        ("memory.pressure", "some", 1e6),
        0.1,
    ),
    (
        "container_pressure_memory_stalled_seconds_total",
        ("memory.pressure", "full", 1e6),
        ("memory.pressure", "full", 1e6),
        0.1,
    ),
    (
        "container_pressure_io_waiting_seconds_total",
        ("io.pressure", "some", 1e6),
        ("io.pressure", "some", 1e6),
        0.1,
    ),
    (
        "container_pressure_io_stalled_seconds_total",
        ("io.pressure", "full", 1e6),
        ("io.pressure", "full", 1e6),
        0.1,
    ),
];
