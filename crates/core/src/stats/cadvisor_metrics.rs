//! `/metrics/cadvisor`: the numbers of every control group, with the names and labels that dashboards know from cAdvisor.

pub(super) mod families;

use jiff::Timestamp;

use crate::exposition::{CommonLabels, Exposition, MetricKind};

use super::cgroup_stats::{CgroupStats, DeviceIo, DeviceNumber};
use super::file_systems::FileSystemStats;
use super::proc_files::InterfaceCounters;
use super::snapshot::{MachineStats, MeasuredCgroup, MeasuredPod, StatsSnapshot};

use families::{GROUP_FAMILIES, GroupFamily, INTERFACE_FAMILIES, IO_FAMILIES};

/// The series of one control group.
struct GroupSeries<'a> {
    labels: CommonLabels,
    stats: &'a CgroupStats,
    started: Option<Timestamp>,
    interfaces: &'a [InterfaceCounters],
    file_systems: Vec<(String, &'a FileSystemStats)>,
}

/// The text of all families.
pub fn cadvisor_metrics(snapshot: &StatsSnapshot) -> String {
    let all = all_series(snapshot);
    let mut exposition = Exposition::default();
    for family in GROUP_FAMILIES {
        add_group_family(&mut exposition, family, &all);
    }
    add_page_faults(&mut exposition, &all);
    add_io(&mut exposition, &all, &snapshot.machine);
    add_file_systems(&mut exposition, &all);
    add_interfaces(&mut exposition, &all);
    add_times(&mut exposition, &all);
    add_machine(&mut exposition, &snapshot.machine);
    exposition.into_text()
}

fn all_series(snapshot: &StatsSnapshot) -> Vec<GroupSeries<'_>> {
    let mut all = Vec::new();
    if let Some(root) = &snapshot.root {
        let interfaces = &snapshot.machine.interfaces;
        let file_systems = file_systems(snapshot);
        all.push(GroupSeries { interfaces, file_systems, ..unnamed(root) });
    }
    all.extend(snapshot.groups.iter().map(unnamed));
    for pod in &snapshot.pods {
        add_pod(&mut all, pod);
    }
    all
}

/// The group of the pod has its names; that of its sandbox has its interfaces, too.
fn add_pod<'a>(all: &mut Vec<GroupSeries<'a>>, pod: &'a MeasuredPod) {
    let interfaces = pod.interfaces.as_deref().unwrap_or_default();
    let on_sandbox = !pod.sandboxes.is_empty();
    let of_pod = if on_sandbox { &[][..] } else { interfaces };
    all.push(GroupSeries { interfaces: of_pod, ..series(&pod.cgroup, pod, ["", "", ""]) });
    for (index, sandbox) in pod.sandboxes.iter().enumerate() {
        let id = sandbox.path.rsplit('/').next().and_then(super::container_id_of_cgroup);
        let interfaces = if index == 0 { interfaces } else { &[] };
        let names = ["", "", id.unwrap_or_default()];
        all.push(GroupSeries { interfaces, ..series(sandbox, pod, names) });
    }
    for container in &pod.containers {
        let names = [container.name.as_str(), &container.image, &container.id];
        all.push(series(&container.cgroup, pod, names));
    }
}

fn unnamed(cgroup: &MeasuredCgroup) -> GroupSeries<'_> {
    of_group(cgroup, ["", "", ""], ["", ""])
}

fn series<'a>(cgroup: &'a MeasuredCgroup, pod: &MeasuredPod, names: [&str; 3]) -> GroupSeries<'a> {
    of_group(cgroup, names, [&pod.namespace, &pod.name])
}

/// Every series has all labels: those that do not apply are blank.
fn of_group<'a>(
    cgroup: &'a MeasuredCgroup,
    [container, image, name]: [&str; 3],
    [namespace, pod]: [&str; 2],
) -> GroupSeries<'a> {
    let labels = CommonLabels::new(&[
        ("container", container),
        ("id", &cgroup.path),
        ("image", image),
        ("name", name),
        ("namespace", namespace),
        ("pod", pod),
    ]);
    GroupSeries {
        labels,
        stats: &cgroup.stats,
        started: cgroup.started,
        interfaces: &[],
        file_systems: Vec::new(),
    }
}

/// Each device once: images and the root directory often lie on the same one.
fn file_systems(snapshot: &StatsSnapshot) -> Vec<(String, &FileSystemStats)> {
    let runtime = [&snapshot.image_fs, &snapshot.container_fs];
    let runtime = runtime.into_iter().flatten().map(|(fs, _)| fs);
    let mut all: Vec<(String, &FileSystemStats)> = Vec::new();
    for fs in snapshot.node_fs.iter().chain(runtime) {
        let name = device_name(&snapshot.machine, fs.device);
        if all.iter().all(|(known, _)| *known != name) {
            all.push((name, fs));
        }
    }
    all
}

fn device_name(machine: &MachineStats, device: DeviceNumber) -> String {
    let unnamed = || format!("{}:{}", device.0, device.1);
    machine.devices.get(&device).cloned().unwrap_or_else(unnamed)
}

fn add_group_family(exposition: &mut Exposition, row: &GroupFamily, all: &[GroupSeries<'_>]) {
    let mut family = exposition.family(row.name, row.kind, row.help);
    for series in all {
        if let Some(value) = (row.value)(series.stats) {
            family.sample_of(&series.labels, row.labels, value, series.stats.at.wall);
        }
    }
}

fn add_page_faults(exposition: &mut Exposition, all: &[GroupSeries<'_>]) {
    let help = "Page faults; those of type pgmajfault read from a device.";
    let name = "container_memory_failures_total";
    let mut family = exposition.family(name, MetricKind::Counter, help);
    for series in all {
        let Some(memory) = series.stats.memory else { continue };
        let rows = [
            ("pgfault", "container", memory.page_faults),
            ("pgfault", "hierarchy", memory.total_page_faults),
            ("pgmajfault", "container", memory.major_page_faults),
            ("pgmajfault", "hierarchy", memory.total_major_page_faults),
        ];
        for (kind, scope, count) in rows {
            let own = [("failure_type", kind), ("scope", scope)];
            family.sample_of(&series.labels, &own, count as f64, series.stats.at.wall);
        }
    }
}

fn add_io(exposition: &mut Exposition, all: &[GroupSeries<'_>], machine: &MachineStats) {
    for (name, help, value) in IO_FAMILIES {
        let mut family = exposition.family(name, MetricKind::Counter, help);
        for series in all {
            for io in &series.stats.io {
                let DeviceIo { device, .. } = io;
                let device = device_name(machine, *device);
                let (own, count) = ([("device", device.as_str())], value(io) as f64);
                family.sample_of(&series.labels, &own, count, series.stats.at.wall);
            }
        }
    }
}

fn add_file_systems(exposition: &mut Exposition, all: &[GroupSeries<'_>]) {
    type Size = fn(&FileSystemStats) -> u64;
    let rows: [(&str, &str, Size); 4] = [
        ("container_fs_limit_bytes", "Size of the file system in bytes.", |fs| fs.capacity),
        ("container_fs_usage_bytes", "Bytes in use on the file system.", |fs| fs.used),
        ("container_fs_inodes_total", "Inodes of the file system.", |fs| fs.inodes),
        ("container_fs_inodes_free", "Free inodes of the file system.", |fs| fs.inodes_free),
    ];
    for (name, help, size) in rows {
        let mut family = exposition.family(name, MetricKind::Gauge, help);
        for series in all {
            for (device, fs) in &series.file_systems {
                let (own, bytes) = ([("device", device.as_str())], size(fs) as f64);
                family.sample_of(&series.labels, &own, bytes, series.stats.at.wall);
            }
        }
    }
}

fn add_interfaces(exposition: &mut Exposition, all: &[GroupSeries<'_>]) {
    for (name, help, value) in INTERFACE_FAMILIES {
        let mut family = exposition.family(name, MetricKind::Counter, help);
        for series in all {
            for counters in series.interfaces {
                let own = [("interface", counters.name.as_str())];
                let count = value(counters) as f64;
                family.sample_of(&series.labels, &own, count, series.stats.at.wall);
            }
        }
    }
}

fn add_times(exposition: &mut Exposition, all: &[GroupSeries<'_>]) {
    let seconds = |at: Timestamp| at.as_millisecond() as f64 / 1e3;
    let help = "When this was started, in seconds since 1970.";
    let mut family = exposition.family("container_start_time_seconds", MetricKind::Gauge, help);
    for series in all {
        if let Some(started) = series.started {
            family.sample_of(&series.labels, &[], seconds(started), series.stats.at.wall);
        }
    }
    let help = "When this was measured last, in seconds since 1970.";
    let mut family = exposition.family("container_last_seen", MetricKind::Gauge, help);
    for series in all {
        let at = series.stats.at.wall;
        family.sample_of(&series.labels, &[], at.as_second() as f64, at);
    }
}

fn add_machine(exposition: &mut Exposition, machine: &MachineStats) {
    let memory = &machine.memory;
    let rows = [
        ("machine_cpu_cores", "CPUs that are online.", f64::from(machine.cores)),
        ("machine_memory_bytes", "Memory of the machine in bytes.", memory.total as f64),
        ("machine_swap_bytes", "Swap of the machine in bytes.", memory.swap_total as f64),
    ];
    for (name, help, value) in rows {
        exposition.single(name, MetricKind::Gauge, help, value);
    }
}
