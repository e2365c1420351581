//! This machine's own cgroups, below a root for each test, with real processes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{fs, io};

use oarsman_core::resources::{CgroupValues, CpuQuota};

use super::super::{CgroupLayout, CgroupManager, Hierarchy, HierarchyKind, files};

/// The root of a test, removed with all that is in it.
struct TestCgroups {
    cgroups: CgroupManager,
}

impl TestCgroups {
    fn new(test: &str) -> Self {
        let root = PathBuf::from(format!("/oarsman-test-{}-{test}", std::process::id()));
        let cgroups = CgroupManager::discover(&root).unwrap();
        let ours = Self { cgroups };
        ours.cgroups.create_root().unwrap();
        ours
    }

    fn group(&self, name: &str) -> PathBuf {
        self.cgroups.root().join(name)
    }

    fn create(&self, name: &str) -> PathBuf {
        let group = self.group(name);
        self.cgroups.create(&group, &CgroupValues::default()).unwrap();
        group
    }

    /// The v2 hierarchy, or the v1 hierarchy of a controller.
    fn directory(&self, controller: &str, group: &Path) -> PathBuf {
        let is_its = |h: &&Hierarchy| format!("{:?}", h.kind).contains(&format!("{controller:?}"));
        let found = self.cgroups.needed.iter().find(is_its).or(self.cgroups.needed.first());
        found.unwrap().directory(group)
    }

    fn read(&self, controller: &str, group: &Path, file: &str) -> String {
        files::read(&self.directory(controller, group).join(file)).unwrap().trim().to_owned()
    }

    /// Starts a program in a group, in every hierarchy.
    fn start(&self, group: &Path, program: &str, arguments: &[&str]) -> Child {
        let files = self.cgroups.needed.iter().map(|h| h.directory(group).join("cgroup.procs"));
        let joins: Vec<String> =
            files.map(|file| format!("echo $$ > {}", file.display())).collect();
        let script = format!("{} && echo in && exec \"$@\"", joins.join(" && "));
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", program]).args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = [0; 3];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        child
    }
}

impl Drop for TestCgroups {
    fn drop(&mut self) {
        let destroyed = self.cgroups.destroy(self.cgroups.root());
        if !std::thread::panicking() {
            destroyed.unwrap();
        }
    }
}

#[test]
fn a_group_has_the_values_it_was_given_and_takes_others() {
    let ours = TestCgroups::new("values");
    let group = ours.group("kubepods/pod1");
    let mut values = CgroupValues {
        shares: Some(512),
        quota: Some(CpuQuota::Micros(50_000)),
        period: Some(100_000),
        memory_max: Some(64 << 20),
        hugetlb: BTreeMap::new(),
        pids_max: Some(100),
    };
    assert!(!ours.cgroups.exists(&group));
    ours.cgroups.create(&group, &values).unwrap();
    assert!(ours.cgroups.exists(&group));
    values.quota = Some(CpuQuota::Micros(5000));
    values.period = Some(10_000);
    values.pids_max = Some(200);
    ours.cgroups.create(&group, &values).unwrap();
    ours.cgroups.create(&group, &values).unwrap();
    let rows = match ours.cgroups.layout() {
        CgroupLayout::V1 | CgroupLayout::Hybrid => vec![
            ("cpu", "cpu.shares", "512"),
            ("cpu", "cpu.cfs_quota_us", "5000"),
            ("cpu", "cpu.cfs_period_us", "10000"),
            ("memory", "memory.limit_in_bytes", "67108864"),
            ("pids", "pids.max", "200"),
        ],
        CgroupLayout::V2 => vec![
            ("cpu", "cpu.weight", "20"),
            ("cpu", "cpu.max", "5000 10000"),
            ("memory", "memory.max", "67108864"),
            ("pids", "pids.max", "200"),
        ],
    };
    for (controller, file, expected) in rows {
        assert_eq!(ours.read(controller, &group, file), expected, "{file}");
    }
}

#[test]
fn a_quota_and_its_period_change_together_under_a_child_that_has_its_own() {
    let ours = TestCgroups::new("bandwidth");
    let (pod, container) = (ours.group("pod1"), ours.group("pod1/container"));
    let with = |quota, period| CgroupValues {
        quota: Some(CpuQuota::Micros(quota)),
        period: Some(period),
        ..CgroupValues::default()
    };
    ours.cgroups.create(&pod, &with(50_000, 100_000)).unwrap();
    ours.cgroups.create(&container, &with(50_000, 100_000)).unwrap();
    // Either value alone would leave the pod less than its container has.
    for (quota, period) in [(500_000, 1_000_000), (5000, 10_000), (50_000, 100_000)] {
        ours.cgroups.create(&pod, &with(quota, period)).unwrap();
    }
    let error = ours.cgroups.create(&pod, &with(10_000, 100_000));
    assert_eq!(
        error.is_err(),
        ours.cgroups.layout() != CgroupLayout::V2,
        "v2 lets a child have more"
    );
}

#[test]
fn a_group_that_one_hierarchy_lacks_does_not_exist_and_is_made_whole() {
    let ours = TestCgroups::new("partial");
    let group = ours.create("pod1");
    fs::remove_dir(ours.directory("memory", &group)).unwrap();
    assert!(!ours.cgroups.exists(&group));
    ours.create("pod1");
    assert!(ours.cgroups.exists(&group));
}

#[test]
fn a_group_is_destroyed_with_its_processes_and_no_others() {
    let ours = TestCgroups::new("destroy");
    let (pod, other) = (ours.create("pod1"), ours.create("pod2"));
    let container = ours.create("pod1/container/deeper");
    let mut inside = [
        ours.start(&pod, "sleep", &["1000"]),
        ours.start(&container, "sleep", &["1000"]),
        ours.start(&container, "sh", &["-c", "trap '' TERM; sleep 1000 & sleep 1000 & wait"]),
    ];
    let mut beside = ours.start(&other, "sleep", &["1000"]);
    assert!(ours.cgroups.processes(&pod).unwrap().len() >= 3);
    ours.cgroups.destroy(&pod).unwrap();
    for child in &mut inside {
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
    assert!(!ours.cgroups.exists(&pod));
    assert!(ours.cgroups.all.iter().all(|h| !h.directory(&pod).exists()));
    assert_eq!(beside.try_wait().unwrap(), None);
    ours.cgroups.destroy(&pod).unwrap();
    ours.cgroups.destroy(&other).unwrap();
    assert_eq!(beside.wait().unwrap().signal(), Some(9));
}

#[test]
fn a_group_that_forks_without_end_is_destroyed() {
    let ours = TestCgroups::new("forks");
    let pod = ours.group("pod1");
    ours.cgroups
        .create(&pod, &CgroupValues { pids_max: Some(40), ..CgroupValues::default() })
        .unwrap();
    // A shell that cannot fork any more ends by itself, so that few processes live at once.
    let script = "while :; do sh -c 'exit' & sh -c 'exit' & wait; done";
    let mut bomb = ours.start(&pod, "sh", &["-c", script]);
    ours.cgroups.destroy(&pod).unwrap();
    assert_eq!(bomb.wait().unwrap().signal(), Some(9));
    assert!(!ours.cgroups.exists(&pod));
}

#[test]
fn a_frozen_group_is_destroyed() {
    let ours = TestCgroups::new("frozen");
    let pod = ours.create("pod1");
    let container = ours.create("pod1/container");
    let mut child = ours.start(&container, "sleep", &["1000"]);
    let freeze = match ours.cgroups.layout() {
        CgroupLayout::V1 | CgroupLayout::Hybrid => ("freezer.state", "FROZEN"),
        CgroupLayout::V2 => ("cgroup.freeze", "1"),
    };
    files::write(&ours.directory("freezer", &container).join(freeze.0), freeze.1).unwrap();
    ours.cgroups.destroy(&pod).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn pods_are_found_by_their_groups() {
    use oarsman_core::resources::names::{CgroupDriver, CgroupNames};
    let ours = TestCgroups::new("pods");
    ours.create("kubepods/burstable/pod8a1f-22/container");
    ours.create("kubepods/pod33");
    let names = CgroupNames::new(CgroupDriver::Cgroupfs, ours.cgroups.root().to_str().unwrap());
    let found = ours.cgroups.pods_below(&names).unwrap();
    let uids: Vec<&str> = found.keys().map(|uid| uid.as_str()).collect();
    assert_eq!(uids, ["33", "8a1f-22"]);
}

/// Row H24 of docs/security.md.
#[test]
fn the_processes_of_a_group_are_listed_when_one_below_it_is_threaded() {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    let point = tempfile::tempdir().unwrap();
    mount("cgroup2", point.path(), "cgroup2", MountFlags::empty(), None).unwrap();
    let name = format!("oarsman-threaded-{}", std::process::id());
    let child = point.path().join(&name).join("child");
    let list = || {
        fs::create_dir_all(&child)?;
        fs::write(child.join("cgroup.type"), "threaded")?;
        let unreadable = fs::read(child.join("cgroup.procs")).is_err();
        let hierarchy = Hierarchy { kind: HierarchyKind::V2, root: point.path().to_owned() };
        let found = hierarchy.processes(Path::new(&name));
        hierarchy.remove(Path::new(&name)).map_err(|error| error.source)?;
        Ok::<_, io::Error>((unreadable, found))
    };
    let listed = list();
    unmount(point.path(), UnmountFlags::DETACH).unwrap();
    let (unreadable, found) = listed.unwrap();
    assert!(unreadable, "the kernel lists them in the group above alone");
    assert_eq!(found.unwrap(), BTreeSet::new());
}
