//! From what was measured to the answer of `/stats/summary`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::disk_usage::DiskUsage;
use crate::ids::FullName;

use super::cgroup_stats::CgroupStats;
use super::file_systems::FileSystemStats;
use super::pressure::{Pressure, PressureWindow};
use super::proc_files::InterfaceCounters;
use super::snapshot::{
    MeasuredCgroup, MeasuredClaim, MeasuredContainer, MeasuredPod, MeasuredVolume, StatsSnapshot,
    SystemContainer,
};
use super::summary::{
    ContainerSummary, CpuSummary, FsSummary, InterfaceSummary, IoSummary, MemorySummary,
    NetworkSummary, NodeSummary, PVCReference, PodReference, PodStatsSummary, ProcessSummary,
    PsiData, PsiSummary, RlimitSummary, RuntimeSummary, StatsSummary, SwapSummary, VolumeSummary,
};

/// The interface whose counters stand for the whole network.
const DEFAULT_INTERFACE: &str = "eth0";

/// The answer to `only_cpu_and_memory`.
pub fn cpu_and_memory_summary(snapshot: &StatsSnapshot) -> StatsSummary {
    let (machine, root) = (&snapshot.machine, snapshot.root.as_ref());
    let node = NodeSummary {
        node_name: snapshot.node_name.clone(),
        system_containers: snapshot.system.iter().map(system_container).collect(),
        start_time: machine.started.map(Time),
        cpu: root.and_then(cpu),
        memory: root.and_then(|root| memory(&root.stats, Some(machine.memory.total))),
        io: None,
        network: None,
        fs: None,
        runtime: None,
        rlimit: None,
        swap: node_swap(snapshot),
    };
    StatsSummary { node, pods: snapshot.pods.iter().map(pod).collect() }
}

/// The whole answer.
pub fn full_summary(snapshot: &StatsSnapshot) -> StatsSummary {
    let mut summary = cpu_and_memory_summary(snapshot);
    let (machine, at) = (&snapshot.machine, snapshot.at);
    let node = &mut summary.node;
    node.io = snapshot.root.as_ref().and_then(|root| io(&root.stats));
    node.network = network(&machine.interfaces, at);
    node.fs = snapshot.node_fs.as_ref().map(|fs| whole_fs(fs, at));
    node.runtime = runtime(snapshot);
    node.rlimit = machine.tasks.map(|tasks| RlimitSummary {
        time: Time(at),
        maxpid: machine.max_pid,
        curproc: Some(tasks),
    });
    for (shown, measured) in summary.pods.iter_mut().zip(&snapshot.pods) {
        add_disks_and_network(shown, measured, snapshot);
    }
    summary
}

fn system_container(container: &SystemContainer) -> ContainerSummary {
    container_summary(container.name, &container.cgroup)
}

fn container_summary(name: &str, cgroup: &MeasuredCgroup) -> ContainerSummary {
    ContainerSummary {
        name: name.to_owned(),
        start_time: cgroup.started.map(Time),
        cpu: cpu(cgroup),
        memory: memory(&cgroup.stats, None),
        io: io(&cgroup.stats),
        rootfs: None,
        logs: None,
        swap: swap(&cgroup.stats),
    }
}

fn pod(pod: &MeasuredPod) -> PodStatsSummary {
    let containers = pod.containers.iter().map(|it| container_summary(&it.name, &it.cgroup));
    PodStatsSummary {
        pod_ref: PodReference {
            name: pod.name.clone(),
            namespace: pod.namespace.clone(),
            uid: pod.uid.as_str().to_owned(),
        },
        start_time: pod.started.map(Time),
        containers: containers.collect(),
        cpu: cpu(&pod.cgroup),
        memory: memory(&pod.cgroup.stats, None),
        io: None,
        network: None,
        volumes: Vec::new(),
        ephemeral_storage: None,
        process_stats: None,
        swap: swap(&pod.cgroup.stats),
    }
}

fn add_disks_and_network(
    shown: &mut PodStatsSummary,
    measured: &MeasuredPod,
    snapshot: &StatsSnapshot,
) {
    let counted = measured.counted.unwrap_or(snapshot.at);
    shown.io = io(&measured.cgroup.stats);
    let interfaces = measured.interfaces.as_deref().unwrap_or_default();
    shown.network = network(interfaces, measured.cgroup.stats.at.wall);
    shown.process_stats = Some(ProcessSummary { process_count: Some(processes(measured)) });
    for (shown, container) in shown.containers.iter_mut().zip(&measured.containers) {
        let layers = snapshot.container_fs.as_ref().or(snapshot.image_fs.as_ref());
        shown.rootfs = part_fs(container.writable_layer, layers.map(|(fs, _)| fs), snapshot.at);
        shown.logs = part_fs(container.logs, snapshot.node_fs.as_ref(), counted);
    }
    let volumes = measured.volumes.iter().flatten();
    let volumes = volumes.map(|it| volume(it, snapshot.node_fs.as_ref(), counted));
    let claims = measured.claims.iter().map(|it| claim(it, snapshot.at));
    shown.volumes = volumes.chain(claims).collect();
    let held = ephemeral_storage(measured);
    shown.ephemeral_storage = part_fs(held, snapshot.node_fs.as_ref(), counted);
}

/// The processes of its containers and of its sandbox.
fn processes(pod: &MeasuredPod) -> u64 {
    let containers = pod.containers.iter().map(|container| &container.cgroup);
    let below = containers.chain(&pod.sandboxes);
    below.filter_map(|cgroup| cgroup.stats.processes).sum()
}

/// None before the pod's volumes and files were counted.
fn ephemeral_storage(pod: &MeasuredPod) -> Option<DiskUsage> {
    let volumes = pod.volumes.as_ref()?.iter().filter(|volume| volume.is_on_disk);
    let volumes: DiskUsage = volumes.map(|volume| volume.usage).sum();
    let of_container = |container: &MeasuredContainer| {
        container.logs.unwrap_or_default() + container.writable_layer.unwrap_or_default()
    };
    let containers: DiskUsage = pod.containers.iter().map(of_container).sum();
    Some(volumes + containers + pod.other_files?)
}

fn cpu(cgroup: &MeasuredCgroup) -> Option<CpuSummary> {
    let usage = cgroup.stats.cpu?;
    Some(CpuSummary {
        time: Time(cgroup.stats.at.wall),
        usage_nano_cores: cgroup.nano_cores,
        usage_core_nano_seconds: Some(usage.total),
        psi: cgroup.stats.pressure.cpu.map(psi),
    })
}

/// `machine` is the memory of the machine for its root group, which has no limit of its own.
fn memory(stats: &CgroupStats, machine: Option<u64>) -> Option<MemorySummary> {
    let memory = stats.memory?;
    let working_set = memory.working_set();
    let limit = machine.or(memory.limit);
    Some(MemorySummary {
        time: Time(stats.at.wall),
        available_bytes: limit.map(|limit| limit.saturating_sub(working_set)),
        usage_bytes: Some(memory.usage),
        working_set_bytes: Some(working_set),
        rss_bytes: Some(memory.rss),
        page_faults: Some(memory.page_faults),
        major_page_faults: Some(memory.major_page_faults),
        psi: stats.pressure.memory.map(psi),
    })
}

fn swap(stats: &CgroupStats) -> Option<SwapSummary> {
    let memory = stats.memory?;
    Some(SwapSummary {
        time: Time(stats.at.wall),
        swap_available_bytes: memory.swap_limit.map(|limit| limit.saturating_sub(memory.swap)),
        swap_usage_bytes: Some(memory.swap),
    })
}

fn node_swap(snapshot: &StatsSnapshot) -> Option<SwapSummary> {
    let memory = &snapshot.machine.memory;
    Some(SwapSummary {
        time: Time(snapshot.at),
        swap_available_bytes: Some(memory.swap_free),
        swap_usage_bytes: Some(memory.swap_total.saturating_sub(memory.swap_free)),
    })
}

fn io(stats: &CgroupStats) -> Option<IoSummary> {
    let psi = psi(stats.pressure.io?);
    Some(IoSummary { time: Time(stats.at.wall), psi: Some(psi) })
}

fn psi(pressure: Pressure) -> PsiSummary {
    let data = |window: PressureWindow| PsiData {
        total: window.total,
        avg10: window.avg10,
        avg60: window.avg60,
        avg300: window.avg300,
    };
    PsiSummary { full: data(pressure.full), some: data(pressure.some) }
}

fn network(interfaces: &[InterfaceCounters], at: Timestamp) -> Option<NetworkSummary> {
    if interfaces.is_empty() {
        return None;
    }
    let shown = |counters: &InterfaceCounters| InterfaceSummary {
        name: counters.name.clone(),
        rx_bytes: Some(counters.rx_bytes),
        rx_errors: Some(counters.rx_errors),
        tx_bytes: Some(counters.tx_bytes),
        tx_errors: Some(counters.tx_errors),
    };
    let default = interfaces.iter().find(|counters| counters.name == DEFAULT_INTERFACE);
    Some(NetworkSummary {
        time: Time(at),
        default: default.map(shown).unwrap_or_default(),
        interfaces: interfaces.iter().map(shown).collect(),
    })
}

fn runtime(snapshot: &StatsSnapshot) -> Option<RuntimeSummary> {
    let shown = |(fs, used): &(FileSystemStats, Option<DiskUsage>)| match used {
        Some(used) => on_fs(*used, fs, snapshot.at),
        None => FsSummary { used_bytes: None, inodes_used: None, ..whole_fs(fs, snapshot.at) },
    };
    let image_fs = snapshot.image_fs.as_ref().map(shown);
    let container_fs = snapshot.container_fs.as_ref().map(shown).or_else(|| image_fs.clone());
    image_fs.is_some().then_some(RuntimeSummary { image_fs, container_fs })
}

/// All of a file system.
fn whole_fs(fs: &FileSystemStats, at: Timestamp) -> FsSummary {
    on_fs(DiskUsage { bytes: fs.used, inodes: fs.inodes_used() }, fs, at)
}

/// A part of a file system.
fn on_fs(used: DiskUsage, fs: &FileSystemStats, at: Timestamp) -> FsSummary {
    FsSummary {
        time: Time(at),
        available_bytes: Some(fs.available),
        capacity_bytes: Some(fs.capacity),
        used_bytes: Some(used.bytes),
        inodes_free: Some(fs.inodes_free),
        inodes: Some(fs.inodes),
        inodes_used: Some(used.inodes),
    }
}

/// A part of a file system, as far as both are known.
fn part_fs(
    used: Option<DiskUsage>,
    fs: Option<&FileSystemStats>,
    at: Timestamp,
) -> Option<FsSummary> {
    match (used, fs) {
        (Some(used), Some(fs)) => Some(on_fs(used, fs, at)),
        (Some(used), None) => Some(of_unknown_fs(used, at)),
        (None, _) => None,
    }
}

fn of_unknown_fs(used: DiskUsage, at: Timestamp) -> FsSummary {
    FsSummary {
        time: Time(at),
        available_bytes: None,
        capacity_bytes: None,
        used_bytes: Some(used.bytes),
        inodes_free: None,
        inodes: None,
        inodes_used: Some(used.inodes),
    }
}

/// A volume on disk has the node's file system; one in memory is as large as its limit.
fn volume(volume: &MeasuredVolume, fs: Option<&FileSystemStats>, at: Timestamp) -> VolumeSummary {
    let name = volume.name.clone();
    let fs = match fs.filter(|_| volume.is_on_disk) {
        Some(fs) => on_fs(volume.usage, fs, at),
        None => FsSummary {
            available_bytes: volume
                .size_limit
                .map(|limit| limit.saturating_sub(volume.usage.bytes)),
            capacity_bytes: volume.size_limit,
            ..of_unknown_fs(volume.usage, at)
        },
    };
    VolumeSummary { fs, name, pvc_ref: None }
}

fn claim(measured: &MeasuredClaim, at: Timestamp) -> VolumeSummary {
    let FullName { name, namespace } = measured.claim.clone();
    VolumeSummary {
        fs: whole_fs(&measured.fs, at),
        name: measured.volume.clone(),
        pvc_ref: Some(PVCReference { name, namespace }),
    }
}
