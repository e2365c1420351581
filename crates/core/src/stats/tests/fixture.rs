//! A node with one pod, every number of which is different.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::super::*;
use crate::disk_usage::DiskUsage;
use crate::ids::FullName;
use crate::time::{Mono, Now};

pub(super) fn wall(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(super) fn stats(base: u64) -> CgroupStats {
    let mono = Mono(Duration::from_secs(1));
    CgroupStats {
        cpu: Some(CpuUsage {
            total: base * 1_000_000_000,
            user: Some(base * 600_000_000),
            system: Some(base * 400_000_000),
        }),
        throttling: Some(CpuThrottling {
            periods: base + 10,
            throttled_periods: base + 5,
            throttled: 1_500_000_000,
        }),
        cpu_limits: Some(CpuLimits { shares: Some(512), period: Some(100_000), quota: None }),
        memory: Some(MemoryUsage {
            usage: base << 20,
            inactive_file: 1 << 20,
            rss: base + 1,
            cache: base + 2,
            mapped_file: base + 3,
            swap: base + 4,
            page_faults: base + 6,
            major_page_faults: base + 7,
            total_page_faults: base + 8,
            total_major_page_faults: base + 9,
            ..MemoryUsage::default()
        }),
        processes: Some(base),
        threads: Some(base * 2),
        max_threads: Some(0),
        ..CgroupStats::at(Now { wall: wall(1000), mono })
    }
}

fn group(path: &str, base: u64) -> MeasuredCgroup {
    let started = Some(wall(500));
    MeasuredCgroup { path: path.to_owned(), stats: stats(base), nano_cores: Some(base), started }
}

fn interfaces(base: u64) -> Vec<InterfaceCounters> {
    let names = ["eth1", "eth0"];
    let counters = |name: &&str| InterfaceCounters {
        name: (*name).to_owned(),
        rx_bytes: base,
        tx_bytes: base + 1,
        ..InterfaceCounters::default()
    };
    names.iter().map(counters).collect()
}

fn pod() -> MeasuredPod {
    let mut main = group("/kubepods/pod1/aaa", 20);
    if let Some(memory) = &mut main.stats.memory {
        memory.limit = Some(64 << 20);
        memory.swap_limit = Some(100);
    }
    main.stats.io =
        vec![DeviceIo { device: (254, 0), read_bytes: 4096, reads: 1, ..DeviceIo::default() }];
    let window = |total| PressureWindow { avg10: 1.5, total, ..PressureWindow::default() };
    main.stats.pressure.cpu = Some(Pressure { some: window(2_500_000), full: window(0) });
    MeasuredPod {
        uid: "1".into(),
        name: "web".to_owned(),
        namespace: "shop".to_owned(),
        started: Some(wall(500)),
        cgroup: group("/kubepods/pod1", 30),
        containers: vec![MeasuredContainer {
            name: "main".to_owned(),
            id: "aaa".to_owned(),
            image: "example.org/web:1".to_owned(),
            cgroup: main,
            writable_layer: Some(DiskUsage { bytes: 8192, inodes: 4 }),
            logs: Some(DiskUsage { bytes: 4096, inodes: 2 }),
        }],
        sandboxes: vec![group("/kubepods/pod1/bbb", 2)],
        interfaces: Some(interfaces(70)),
        volumes: Some(vec![
            MeasuredVolume {
                name: "data".to_owned(),
                usage: DiskUsage { bytes: 16_384, inodes: 8 },
                size_limit: None,
                is_on_disk: true,
            },
            MeasuredVolume {
                name: "fast".to_owned(),
                usage: DiskUsage { bytes: 1000, inodes: 3 },
                size_limit: Some(3000),
                is_on_disk: false,
            },
        ]),
        claims: vec![MeasuredClaim {
            volume: "db".to_owned(),
            claim: FullName { name: "db-0".to_owned(), namespace: "shop".to_owned() },
            fs: FileSystemStats {
                device: (254, 9),
                capacity: 5000,
                available: 3000,
                used: 1500,
                inodes: 40,
                inodes_free: 30,
            },
        }],
        other_files: Some(DiskUsage { bytes: 512, inodes: 1 }),
        counted: Some(wall(990)),
    }
}

pub(super) fn snapshot() -> StatsSnapshot {
    let fs = FileSystemStats {
        device: (254, 1),
        capacity: 1_000_000,
        available: 600_000,
        used: 300_000,
        inodes: 500,
        inodes_free: 400,
    };
    let all_pods = group("/kubepods", 40);
    StatsSnapshot {
        at: wall(1000),
        node_name: "n1".to_owned(),
        machine: MachineStats {
            cores: 2,
            memory: MemoryInfo {
                total: 1 << 30,
                swap_total: 2048,
                swap_free: 1024,
                ..MemoryInfo::default()
            },
            started: Some(wall(100)),
            max_pid: Some(32_768),
            tasks: Some(94),
            interfaces: interfaces(900),
            devices: BTreeMap::from([((254, 0), "/dev/vda".to_owned())]),
        },
        root: Some(group("/", 100)),
        system: vec![SystemContainer { name: "pods", cgroup: all_pods.clone() }],
        groups: vec![all_pods],
        pods: vec![pod()],
        node_fs: Some(fs),
        image_fs: Some((fs, Some(DiskUsage { bytes: 50_000, inodes: 60 }))),
        container_fs: None,
    }
}
