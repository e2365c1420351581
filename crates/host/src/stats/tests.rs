//! Plain directories laid out as the control groups and `/proc` of other machines.

use std::fs;
use std::time::Duration;

use oarsman_core::stats::{ContainerToMeasure, CpuLimits, CpuThrottling, CpuUsage, DeviceIo};
use tempfile::TempDir;

use super::*;
use crate::cgroups::HierarchyKind;

const POD: &str = "/kubepods/pod1";
const PRESSURE: &str = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
const NET_DEV: &str = "head\nhead\n  eth0: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0\n";

struct FakeMachine {
    directory: TempDir,
}

impl FakeMachine {
    fn new(files: &[(&str, &str)]) -> Self {
        let machine = Self { directory: tempfile::tempdir().unwrap() };
        machine.write(&[
            (
                "proc/meminfo",
                "MemTotal: 1000 kB\nMemFree: 400 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n",
            ),
            ("proc/stat", "cpu 1\nbtime 1000\n"),
            ("proc/loadavg", "0 0 0 1/77 5\n"),
            ("proc/partitions", "major minor  #blocks  name\n\n 8 0 100 sda\n"),
            ("proc/sys/kernel/pid_max", "4194304\n"),
            ("proc/sys/kernel/threads-max", "190000\n"),
            ("proc/self/net/dev", NET_DEV),
            ("proc/42/net/dev", NET_DEV),
            ("proc/99/cgroup", "4:memory:/daemon\n0::/daemon\n"),
            ("proc/99/stat", "99 (a b) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 250 0\n"),
            ("proc/98/cgroup", "4:memory:/../../outside\n0::/../../outside\n"),
        ]);
        machine.write(files);
        machine
    }

    fn write(&self, files: &[(&str, &str)]) {
        for (file, text) in files {
            let path = self.directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn stats(&self, hierarchies: &[(HierarchyKind, &str)]) -> HostStats {
        let at = |(kind, root): &(HierarchyKind, &str)| Hierarchy {
            kind: kind.clone(),
            root: self.directory.path().join(root),
        };
        let hierarchies: Vec<_> = hierarchies.iter().map(at).collect();
        HostStats::with_files(&hierarchies, &self.directory.path().join("proc"), 2).unwrap()
    }
}

fn v1(controller: &str) -> HierarchyKind {
    HierarchyKind::V1(vec![controller.to_owned()])
}

/// Controllers on mounts of their own, with a v2 tree beside them in which only the pod's own group is.
fn hybrid() -> (FakeMachine, HostStats) {
    let machine = FakeMachine::new(&[
        ("memory/memory.stat", "total_inactive_file 1\n"),
        ("memory/memory.usage_in_bytes", "600000\n"),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("cpuacct/cpuacct.usage", "5000\n"),
        ("memory/kubepods/pod1/memory.stat", "total_rss 8\ntotal_inactive_file 100\npgfault 3\n"),
        ("memory/kubepods/pod1/memory.usage_in_bytes", "1000\n"),
        ("memory/kubepods/pod1/memory.limit_in_bytes", "5000\n"),
        ("memory/kubepods/pod1/memory.memsw.limit_in_bytes", "7000\n"),
        ("memory/kubepods/pod1/memory.failcnt", "2\n"),
        ("memory/kubepods/pod1/memory.max_usage_in_bytes", "4000\n"),
        (
            "memory/kubepods/pod1/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
        ),
        ("memory/kubepods/pod1/cgroup.procs", ""),
        ("cpuacct/kubepods/pod1/cpuacct.usage", "300\n"),
        ("cpuacct/kubepods/pod1/cpuacct.stat", "user 2\nsystem 1\n"),
        ("cpu/kubepods/pod1/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 11\n"),
        ("cpu/kubepods/pod1/cpu.shares", "512\n"),
        ("cpu/kubepods/pod1/cpu.cfs_period_us", "100000\n"),
        ("cpu/kubepods/pod1/cpu.cfs_quota_us", "-1\n"),
        ("pids/kubepods/pod1/pids.current", "6\n"),
        ("pids/kubepods/pod1/pids.max", "max\n"),
        (
            "blkio/kubepods/pod1/blkio.throttle.io_service_bytes_recursive",
            "8:0 Read 512\nTotal 512\n",
        ),
        ("blkio/kubepods/pod1/blkio.throttle.io_serviced_recursive", "8:0 Read 1\nTotal 1\n"),
        ("unified/kubepods/pod1/cpu.pressure", PRESSURE),
        ("memory/kubepods/pod1/aaa/memory.stat", "total_rss 5\n"),
        ("memory/kubepods/pod1/aaa/memory.usage_in_bytes", "50\n"),
        ("memory/kubepods/pod1/aaa/memory.limit_in_bytes", "60\n"),
        ("memory/kubepods/pod1/aaa/cgroup.procs", "43\n44\n"),
        ("cpuacct/kubepods/pod1/aaa/cpuacct.usage", "200\n"),
        ("memory/kubepods/pod1/sandbox/memory.stat", ""),
        ("memory/kubepods/pod1/sandbox/memory.usage_in_bytes", "10\n"),
        ("memory/kubepods/pod1/sandbox/cgroup.procs", "42\n"),
        ("memory/daemon/memory.stat", ""),
        ("memory/daemon/memory.usage_in_bytes", "77\n"),
    ]);
    let controllers = ["cpu", "cpuacct", "memory", "pids", "blkio"];
    let mut hierarchies: Vec<_> = controllers.map(|name| (v1(name), name)).into();
    hierarchies.push((HierarchyKind::V2, "unified"));
    let stats = machine.stats(&hierarchies);
    (machine, stats)
}

fn unified() -> (FakeMachine, HostStats) {
    let machine = FakeMachine::new(&[
        ("cgroup/cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n"),
        ("cgroup/memory.stat", "inactive_file 1024\nanon 9\n"),
        (
            "cgroup/kubepods/pod1/cpu.stat",
            "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 9\nnr_throttled 4\nthrottled_usec 11\n",
        ),
        ("cgroup/kubepods/pod1/cpu.max", "50000 100000\n"),
        ("cgroup/kubepods/pod1/cpu.weight", "100\n"),
        ("cgroup/kubepods/pod1/memory.stat", "anon 8\ninactive_file 100\npgfault 3\n"),
        ("cgroup/kubepods/pod1/memory.current", "1000\n"),
        ("cgroup/kubepods/pod1/memory.max", "max\n"),
        ("cgroup/kubepods/pod1/memory.swap.current", "12\n"),
        ("cgroup/kubepods/pod1/memory.swap.max", "2000\n"),
        ("cgroup/kubepods/pod1/memory.events", "low 0\nhigh 0\nmax 2\noom 1\noom_kill 1\n"),
        ("cgroup/kubepods/pod1/pids.current", "6\n"),
        ("cgroup/kubepods/pod1/pids.max", "100\n"),
        ("cgroup/kubepods/pod1/io.stat", "8:0 rbytes=512 wbytes=0 rios=1 wios=0\n"),
        ("cgroup/kubepods/pod1/io.pressure", PRESSURE),
        // A monitor of CRI-O, whose process is in the node's network.
        ("cgroup/kubepods/pod1/crio-conmon-f00.scope/cgroup.procs", "77\n"),
        ("cgroup/kubepods/pod1/sandbox/cgroup.procs", "42\n"),
        ("cgroup/daemon/memory.stat", "anon 1\n"),
        ("cgroup/daemon/memory.current", "77\n"),
    ]);
    let stats = machine.stats(&[(HierarchyKind::V2, "cgroup")]);
    (machine, stats)
}

fn plan(detail: StatsDetail) -> StatsPlan {
    let container = |id: &str| ContainerToMeasure {
        id: id.to_owned(),
        name: "main".to_owned(),
        image: String::new(),
        started: None,
    };
    let pod = |cgroup: &str| PodToMeasure {
        uid: "1".into(),
        name: "web".to_owned(),
        namespace: "shop".to_owned(),
        started: None,
        cgroup: cgroup.to_owned(),
        has_network: true,
        containers: vec![container("aaa")],
    };
    StatsPlan {
        detail,
        has_networks: true,
        groups: vec!["/kubepods/none".to_owned()],
        pods: vec![pod(POD), pod("/kubepods/podgone")],
        daemons: vec![99, 98, 1_234_567],
    }
}

fn clock() -> ReadClock {
    let wall = Timestamp::from_second(5).unwrap();
    Arc::new(move || Now { wall, mono: Mono(Duration::from_secs(3)) })
}

#[tokio::test]
async fn a_hybrid_machine_is_read_from_all_its_trees() {
    let (_machine, stats) = hybrid();
    let reading = stats.read(plan(StatsDetail::All), clock()).await.unwrap();
    assert_eq!(reading.root.unwrap().memory.unwrap().working_set(), 599_999);
    assert_eq!(reading.groups, [], "what is not there is left out");
    assert_eq!(reading.pods.len(), 1, "a pod whose group is gone is left out");
    let (_, pod) = &reading.pods[0];
    let own = &pod.own;
    assert_eq!(own.at, clock()());
    let cpu = CpuUsage { total: 300, user: Some(20_000_000), system: Some(10_000_000) };
    assert_eq!(own.cpu, Some(cpu));
    assert_eq!(
        own.throttling,
        Some(CpuThrottling { periods: 9, throttled_periods: 4, throttled: 11 })
    );
    assert_eq!(
        own.cpu_limits,
        Some(CpuLimits { shares: Some(512), period: Some(100_000), quota: None })
    );
    let memory = own.memory.unwrap();
    assert_eq!((memory.usage, memory.working_set(), memory.rss), (1000, 900, 8));
    assert_eq!((memory.limit, memory.swap_limit), (Some(5000), Some(2000)));
    assert_eq!((memory.fail_count, memory.max_usage), (Some(2), Some(4000)));
    assert_eq!((own.oom_kills, own.processes), (Some(1), Some(0)));
    assert_eq!((own.threads, own.max_threads), (Some(6), Some(0)));
    let io = DeviceIo { device: (8, 0), read_bytes: 512, reads: 1, ..DeviceIo::default() };
    assert_eq!(own.io, [io]);
    assert_eq!(own.pressure.cpu.unwrap().some.total, 7);
    assert_eq!(own.pressure.io, None);

    let names: Vec<_> = pod.below.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["aaa", "sandbox"]);
    let main = &pod.below[0].1;
    assert_eq!((main.cpu.unwrap().total, main.processes), (200, Some(2)));
    assert_eq!(main.pressure.cpu, None, "it is not in the v2 tree");
    assert_eq!(pod.below[1].1.cpu, None, "it is in no tree of cpuacct");
    assert_eq!(pod.interfaces.as_ref().unwrap()[0].tx_bytes, 2000);
}

#[tokio::test]
async fn a_v2_machine_is_read_from_its_one_tree() {
    let (_machine, stats) = unified();
    let reading = stats.read(plan(StatsDetail::All), clock()).await.unwrap();
    let root = reading.root.unwrap();
    assert_eq!(root.cpu.unwrap().total, 5000);
    let memory = root.memory.unwrap();
    assert_eq!((memory.usage, memory.rss, memory.swap), (600 * 1024, 9, 6 * 1024));
    assert_eq!(memory.working_set(), 599 * 1024);
    let (_, pod) = &reading.pods[0];
    let own = &pod.own;
    assert_eq!(own.cpu, Some(CpuUsage { total: 30_000, user: Some(20_000), system: Some(10_000) }));
    assert_eq!(
        own.throttling,
        Some(CpuThrottling { periods: 9, throttled_periods: 4, throttled: 11_000 })
    );
    assert_eq!(
        own.cpu_limits,
        Some(CpuLimits { shares: Some(2597), period: Some(100_000), quota: Some(50_000) })
    );
    let memory = own.memory.unwrap();
    assert_eq!((memory.usage, memory.working_set(), memory.swap), (1000, 900, 12));
    assert_eq!((memory.limit, memory.swap_limit), (None, Some(2000)));
    assert_eq!((memory.fail_count, own.oom_kills), (Some(2), Some(1)));
    assert_eq!((own.threads, own.max_threads), (Some(6), Some(100)));
    assert_eq!(own.io[0].read_bytes, 512);
    assert_eq!(own.pressure.io.unwrap().full.total, 5);
    assert_eq!(pod.below[0].1.memory, None);
    assert_eq!(pod.interfaces.as_ref().unwrap()[0].rx_bytes, 1000);
}

#[tokio::test]
async fn less_is_read_where_less_is_shown() {
    for (_machine, stats) in [hybrid(), unified()] {
        let wanted = StatsPlan { has_networks: false, ..plan(StatsDetail::CpuAndMemory) };
        let reading = stats.read(wanted, clock()).await.unwrap();
        let own = &reading.pods[0].1.own;
        assert!(own.cpu.is_some() && own.memory.is_some());
        assert_eq!((own.processes, own.threads, own.oom_kills), (None, None, None));
        assert_eq!((own.cpu_limits, own.io.len(), own.pressure.cpu), (None, 0, None));
        assert_eq!(reading.pods[0].1.interfaces, None);
        assert_eq!((reading.machine.interfaces.len(), reading.machine.tasks), (0, None));
    }
}

#[tokio::test]
async fn daemons_are_measured_by_the_group_of_their_process() {
    for (_machine, stats) in [hybrid(), unified()] {
        let reading = stats.read(plan(StatsDetail::Summary), clock()).await.unwrap();
        let (path, group, started) = reading.daemons[0].as_ref().unwrap();
        assert_eq!((path.as_str(), group.memory.unwrap().usage), ("/daemon", 77));
        assert_eq!(*started, Some(Timestamp::from_millisecond(1_002_500).unwrap()));
        assert!(reading.daemons[1].is_none(), "it is outside of our namespace");
        assert!(reading.daemons[2].is_none(), "there is no such process");
    }
}

#[tokio::test]
async fn the_machine_has_memory_processes_and_devices() {
    let (_machine, stats) = hybrid();
    let machine = stats.read(plan(StatsDetail::All), clock()).await.unwrap().machine;
    assert_eq!((machine.cores, machine.memory.total), (2, 1000 * 1024));
    assert_eq!((machine.tasks, machine.max_pid), (Some(77), Some(190_000)));
    assert_eq!(machine.started, Some(Timestamp::from_second(1000).unwrap()));
    assert_eq!(machine.devices[&(8, 0)], "/dev/sda");
    assert_eq!(machine.interfaces[0].name, "eth0");
}

#[tokio::test]
async fn cpu_time_is_read_again_of_the_groups_that_are_left() {
    for ((_machine, stats), expected) in [(hybrid(), 300), (unified(), 30_000)] {
        let groups = vec![POD.to_owned(), "/kubepods/podgone".to_owned()];
        let times = stats.cpu_times(groups, clock()).await.unwrap();
        assert_eq!(times, [(POD.to_owned(), Mono(Duration::from_secs(3)), expected)]);
    }
}

#[tokio::test]
async fn a_long_file_is_read_whole() {
    let processes: String = (1..=20_000).map(|pid| format!("{pid}\n")).collect();
    let (machine, stats) = hybrid();
    machine.write(&[("memory/kubepods/pod1/aaa/cgroup.procs", &processes)]);
    let reading = stats.read(plan(StatsDetail::Summary), clock()).await.unwrap();
    assert_eq!(reading.pods[0].1.below[0].1.processes, Some(20_000));
}

#[tokio::test]
async fn this_machine_has_a_file_system_and_a_root_group() {
    let stats = HostStats::open(1).unwrap();
    let found = stats.file_system("/".into()).await.unwrap();
    assert!(found.capacity >= found.available && found.capacity > 0, "{found:?}");
    assert!(stats.file_system("/nowhere/at/all".into()).await.is_err());
    let reading = stats.read(plan(StatsDetail::CpuAndMemory), clock()).await.unwrap();
    assert!(reading.root.unwrap().cpu.unwrap().total > 0);
}
