//! Plain directories and files, laid out as the hierarchies of other machines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use oarsman_core::ids::PodUid;
use oarsman_core::resources::names::{CgroupDriver, CgroupNames};
use oarsman_core::resources::{CgroupValues, CgroupVersion, CpuQuota};
use tempfile::TempDir;

use super::super::{CgroupError, CgroupLayout, CgroupManager, Hierarchy, HierarchyKind};

const POD: &str = "/kubepods/pod1";

struct FakeHierarchies {
    directory: TempDir,
}

impl FakeHierarchies {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn with(self, files: &[(&str, &str)]) -> Self {
        for (file, text) in files {
            let path = self.path(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self
    }

    /// The contents of files.
    fn read<'a>(&self, files: &[&'a str]) -> Vec<(&'a str, String)> {
        files.iter().map(|file| (*file, fs::read_to_string(self.path(file)).unwrap())).collect()
    }

    /// Sets an old time of change on every file, so that a write to it shows.
    fn age(&self) {
        for file in self.files() {
            File::options().write(true).open(file).unwrap().set_modified(old()).unwrap();
        }
    }

    fn written(&self) -> Vec<PathBuf> {
        let modified = |file: &PathBuf| fs::metadata(file).unwrap().modified().unwrap();
        self.files().into_iter().filter(|file| modified(file) != old()).collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut to_visit = vec![self.directory.path().to_owned()];
        while let Some(directory) = to_visit.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { to_visit.push(path) } else { found.push(path) }
            }
        }
        found
    }

    fn v2(&self, root: &str) -> CgroupManager {
        let tree = Hierarchy { kind: HierarchyKind::V2, root: self.directory.path().to_owned() };
        CgroupManager::with_hierarchies(vec![tree], Path::new(root)).unwrap()
    }

    fn v1(&self, names: &[&[&str]], root: &str) -> CgroupManager {
        let tree = |names: &&[&str]| Hierarchy {
            kind: HierarchyKind::V1(names.iter().map(|name| (*name).to_owned()).collect()),
            root: self.path(&names.join(",")),
        };
        CgroupManager::with_hierarchies(names.iter().map(tree).collect(), Path::new(root)).unwrap()
    }
}

fn old() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1000)
}

fn texts(rows: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    rows.iter().map(|(file, text)| (*file, (*text).to_owned())).collect()
}

fn values() -> CgroupValues {
    CgroupValues {
        shares: Some(1024),
        quota: Some(CpuQuota::Micros(50_000)),
        period: Some(100_000),
        memory_max: Some(64 << 20),
        hugetlb: BTreeMap::from([("2MB".to_owned(), 4 << 20)]),
        pids_max: Some(100),
    }
}

/// A v2 machine on which the pod's group exists, with the kernel's default values.
fn v2_machine() -> FakeHierarchies {
    FakeHierarchies::new().with(&[
        ("cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma\n"),
        ("cgroup.subtree_control", "memory pids\n"),
        ("kubepods/cgroup.controllers", "memory pids\n"),
        ("kubepods/cgroup.subtree_control", "\n"),
        ("kubepods/pod1/cgroup.controllers", "\n"),
        ("kubepods/pod1/cpu.weight", "100\n"),
        ("kubepods/pod1/cpu.max", "max 100000\n"),
        ("kubepods/pod1/memory.max", "max\n"),
        ("kubepods/pod1/hugetlb.2MB.max", "max\n"),
        ("kubepods/pod1/pids.max", "max\n"),
    ])
}

#[test]
fn on_v2_controllers_are_handed_down_and_values_set() {
    let machine = v2_machine();
    machine.v2("/").create(Path::new(POD), &values()).unwrap();
    let expected = texts(&[
        ("cgroup.subtree_control", "+cpu +cpuset +hugetlb"),
        ("kubepods/cgroup.subtree_control", "+cpu +cpuset +hugetlb +memory +pids"),
        ("kubepods/pod1/cpu.weight", "39"),
        ("kubepods/pod1/cpu.max", "50000 100000"),
        ("kubepods/pod1/memory.max", "67108864"),
        ("kubepods/pod1/hugetlb.2MB.max", "4194304"),
        ("kubepods/pod1/pids.max", "100"),
    ]);
    let files: Vec<&str> = expected.iter().map(|(file, _)| *file).collect();
    assert_eq!(machine.read(&files), expected);
}

#[test]
fn on_v2_a_group_as_it_should_be_is_not_written_to() {
    let machine = v2_machine().with(&[
        ("kubepods/pod1/cgroup.controllers", "cpuset cpu memory hugetlb pids\n"),
        ("kubepods/pod1/cpu.weight", "39\n"),
        ("kubepods/pod1/cpu.max", "50000 100000\n"),
        ("kubepods/pod1/memory.max", "67108864\n"),
        ("kubepods/pod1/hugetlb.2MB.max", "4194304\n"),
        ("kubepods/pod1/pids.max", "max\n"),
    ]);
    machine.age();
    machine.v2("/").create(Path::new(POD), &values()).unwrap();
    assert_eq!(machine.written(), [machine.path("kubepods/pod1/pids.max")]);
    machine.age();
    let part_of_a_page = CgroupValues { memory_max: Some((64 << 20) + 1), ..values() };
    machine.v2("/").create(Path::new(POD), &part_of_a_page).unwrap();
    machine.v2("/").create(Path::new(POD), &CgroupValues::default()).unwrap();
    assert_eq!(machine.written(), [] as [PathBuf; 0]);
}

#[test]
fn on_v2_what_is_unlimited_is_called_max() {
    let machine = v2_machine().with(&[("kubepods/pod1/cpu.max", "50000 100000\n")]);
    let free = CgroupValues { quota: Some(CpuQuota::Unlimited), ..CgroupValues::default() };
    machine.v2("/").create(Path::new(POD), &free).unwrap();
    assert_eq!(
        machine.read(&["kubepods/pod1/cpu.max"]),
        texts(&[("kubepods/pod1/cpu.max", "max 100000")])
    );
}

#[test]
fn on_v2_values_of_controllers_that_are_not_there_are_left_out() {
    let machine = v2_machine().with(&[("cgroup.controllers", "cpu memory\n")]);
    fs::remove_file(machine.path("kubepods/pod1/hugetlb.2MB.max")).unwrap();
    machine.v2("/").create(Path::new(POD), &values()).unwrap();
    assert_eq!(
        machine.read(&["kubepods/pod1/pids.max"]),
        texts(&[("kubepods/pod1/pids.max", "max\n")])
    );
    assert_eq!(
        machine.read(&["kubepods/cgroup.subtree_control"]),
        texts(&[("kubepods/cgroup.subtree_control", "+cpu +memory")])
    );
}

#[test]
fn on_v2_nothing_above_the_root_is_written_to_but_when_the_root_is_made() {
    let files = [
        ("cgroup.controllers", "cpu memory\n"),
        ("cgroup.subtree_control", "\n"),
        ("ours/cgroup.controllers", "\n"),
        ("ours/cgroup.subtree_control", "\n"),
        ("ours/pod1/cgroup.controllers", "\n"),
    ];
    let machine = FakeHierarchies::new().with(&files);
    machine.age();
    machine.v2("/ours").create(Path::new("/ours/pod1"), &CgroupValues::default()).unwrap();
    assert_eq!(machine.written(), [machine.path("ours/cgroup.subtree_control")]);
    machine.age();
    machine.v2("/ours").create_root().unwrap();
    assert_eq!(machine.written(), [machine.path("cgroup.subtree_control")]);
}

#[test]
fn on_v2_a_group_that_lacks_a_controller_does_not_exist() {
    let rows =
        [("cpuset cpu memory hugetlb pids", true), ("cpu memory hugetlb pids", false), ("", false)];
    for (controllers, expected) in rows {
        let machine = v2_machine().with(&[("kubepods/pod1/cgroup.controllers", controllers)]);
        assert_eq!(machine.v2("/").exists(Path::new(POD)), expected, "{controllers}");
    }
    assert!(!v2_machine().v2("/").exists(Path::new("/kubepods/pod2")));
}

#[test]
fn a_value_the_kernel_has_no_file_for_is_an_error_that_names_the_file() {
    let machine = v2_machine();
    let file = machine.path("kubepods/pod1/memory.max");
    fs::remove_file(&file).unwrap();
    let error = machine.v2("/").create(Path::new(POD), &values()).unwrap_err();
    assert!(matches!(&error, CgroupError::Read { path, .. } if *path == file), "{error}");
    assert!(!file.exists());
}

#[test]
fn on_v1_each_hierarchy_takes_its_own_values() {
    let machine = FakeHierarchies::new().with(&[
        ("cpu,cpuacct/kubepods/pod1/cpu.shares", "1024\n"),
        ("cpu,cpuacct/kubepods/pod1/cpu.cfs_period_us", "100000\n"),
        ("cpu,cpuacct/kubepods/pod1/cpu.cfs_quota_us", "-1\n"),
        ("memory/kubepods/pod1/memory.limit_in_bytes", "9223372036854771712\n"),
        ("hugetlb/kubepods/pod1/hugetlb.2MB.limit_in_bytes", "9223372036854771712\n"),
        ("pids/kubepods/pod1/pids.max", "max\n"),
        ("cpuset/cpuset.cpus", "0-3\n"),
        ("cpuset/cpuset.mems", "0\n"),
        ("cpuset/kubepods/cpuset.cpus", "1\n"),
        ("cpuset/kubepods/cpuset.mems", "\n"),
        ("cpuset/kubepods/pod1/cpuset.cpus", "\n"),
        ("cpuset/kubepods/pod1/cpuset.mems", "\n"),
        ("devices/devices.list", ""),
        ("net_cls/net_cls.classid", ""),
    ]);
    machine.age();
    let names: [&[&str]; 7] = [
        &["cpu", "cpuacct"],
        &["memory"],
        &["hugetlb"],
        &["pids"],
        &["cpuset"],
        &["devices"],
        &["net_cls"],
    ];
    let cgroups = machine.v1(&names, "/");
    assert!(!cgroups.exists(Path::new(POD)), "not in devices");
    cgroups.create(Path::new(POD), &values()).unwrap();
    assert!(cgroups.exists(Path::new(POD)));
    assert!(!machine.path("net_cls/kubepods").exists(), "not one of the needed");
    let expected = texts(&[
        ("cpu,cpuacct/kubepods/pod1/cpu.cfs_quota_us", "50000"),
        ("memory/kubepods/pod1/memory.limit_in_bytes", "67108864"),
        ("hugetlb/kubepods/pod1/hugetlb.2MB.limit_in_bytes", "4194304"),
        ("pids/kubepods/pod1/pids.max", "100"),
        ("cpuset/kubepods/cpuset.mems", "0"),
        ("cpuset/kubepods/pod1/cpuset.cpus", "1"),
        ("cpuset/kubepods/pod1/cpuset.mems", "0"),
    ]);
    let files: Vec<&str> = expected.iter().map(|(file, _)| *file).collect();
    assert_eq!(machine.read(&files), expected);
    let written: BTreeSet<PathBuf> = machine.written().into_iter().collect();
    assert_eq!(written, files.iter().map(|file| machine.path(file)).collect());
    machine.age();
    cgroups.create(Path::new(POD), &values()).unwrap();
    assert_eq!(machine.written(), [] as [PathBuf; 0]);
}

#[test]
fn what_controls_anything_in_v1_makes_a_v1_machine() {
    let v1 = |name: &str| Hierarchy {
        kind: HierarchyKind::V1(vec![name.to_owned()]),
        root: "/1".into(),
    };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("cgroup.controllers"), "cpu").unwrap();
    let v2 = || Hierarchy { kind: HierarchyKind::V2, root: directory.path().to_owned() };
    let rows = [
        (vec![v1("cpu")], CgroupLayout::V1, CgroupVersion::V1),
        (vec![v1("cpu"), v2()], CgroupLayout::Hybrid, CgroupVersion::V1),
        (vec![v2()], CgroupLayout::V2, CgroupVersion::V2),
        (vec![v1("name=systemd"), v2()], CgroupLayout::V2, CgroupVersion::V2),
    ];
    for (all, layout, version) in rows {
        let found = CgroupManager::with_hierarchies(all, Path::new("/")).unwrap();
        assert_eq!((found.layout(), found.version()), (layout, version));
    }
    assert!(matches!(
        CgroupManager::with_hierarchies(vec![], Path::new("/")),
        Err(CgroupError::NotMounted)
    ));
}

#[test]
fn swap_is_limited_where_a_group_has_the_file_for_it() {
    let limits = |machine: &FakeHierarchies, kind: HierarchyKind| {
        let root = machine.path("tree");
        let tree = Hierarchy { kind, root };
        CgroupManager::with_hierarchies(vec![tree], Path::new("/")).unwrap().limits_swap()
    };
    let v2: [(&[(&str, &str)], bool); 3] = [
        (&[("tree/system.slice/memory.current", "0")], false),
        (&[("tree/a/memory.current", "0"), ("tree/a/memory.swap.max", "max")], true),
        // Nothing counts memory yet, so nothing shows whether it can.
        (&[("tree/a/cgroup.procs", "")], true),
    ];
    for (files, expected) in v2 {
        let machine = FakeHierarchies::new().with(&[("tree/cgroup.controllers", "cpu memory")]);
        assert_eq!(limits(&machine.with(files), HierarchyKind::V2), expected, "{files:?}");
    }
    for (file, expected) in
        [("memory.memsw.limit_in_bytes", true), ("memory.limit_in_bytes", false)]
    {
        let machine = FakeHierarchies::new().with(&[(&format!("tree/{file}"), "0")]);
        let kind = HierarchyKind::V1(vec!["memory".to_owned()]);
        assert_eq!(limits(&machine, kind), expected, "{file}");
    }
}

#[test]
fn nothing_outside_of_the_root_is_touched() {
    let machine = v2_machine().with(&[("ours/x", ""), ("oursnot/x", "")]);
    let rows = [
        ("/ours", "/"),
        ("/ours", "/ours"),
        ("/ours", "/other"),
        ("/ours", "/oursnot"),
        ("/ours", "/ours/../other"),
        ("/ours", "ours/pod1"),
        ("/ours", ""),
        ("/", "/"),
    ];
    for (root, group) in rows {
        let cgroups = machine.v2(root);
        let made = cgroups.create(Path::new(group), &CgroupValues::default());
        assert!(matches!(made, Err(CgroupError::Outside { .. })), "make {group} below {root}");
        assert!(!cgroups.exists(Path::new(group)), "{group} below {root}");
        if root != group || root == "/" {
            let destroyed = cgroups.destroy(Path::new(group));
            assert!(matches!(destroyed, Err(CgroupError::Outside { .. })), "{group} below {root}");
        }
    }
    for root in ["ours", "/ours/../x", ""] {
        assert!(matches!(
            CgroupManager::with_hierarchies(vec![], Path::new(root)),
            Err(CgroupError::Outside { .. })
        ));
    }
}

#[test]
fn pods_are_found_in_any_hierarchy() {
    let machine = FakeHierarchies::new();
    let groups = [
        "cpu/kubepods/pod1/container",
        "memory/kubepods/pod1",
        "memory/kubepods/burstable/pod2",
        "cpu/kubepods/besteffort/pod3",
        "cpu/kubepods/besteffort/pod2",
        "cpu/pod4",
        "cpu/elsewhere/kubepods/pod5",
    ];
    for group in groups {
        fs::create_dir_all(machine.path(group)).unwrap();
    }
    let cgroups = machine.v1(&[&["cpu"], &["memory"]], "/");
    let found = cgroups.pods_below(&CgroupNames::new(CgroupDriver::Cgroupfs, "/")).unwrap();
    let pod = |uid: &str, groups: &[&str]| {
        (PodUid::from(uid), groups.iter().map(PathBuf::from).collect::<BTreeSet<_>>())
    };
    let expected = BTreeMap::from([
        pod("1", &["/kubepods/pod1"]),
        pod("2", &["/kubepods/besteffort/pod2", "/kubepods/burstable/pod2"]),
        pod("3", &["/kubepods/besteffort/pod3"]),
    ]);
    assert_eq!(found, expected);
    let elsewhere = machine.v1(&[&["cpu"]], "/ours");
    let error = elsewhere.pods_below(&CgroupNames::new(CgroupDriver::Cgroupfs, "/")).unwrap_err();
    assert!(matches!(error, CgroupError::Outside { .. }), "{error}");
}

#[test]
fn on_v2_a_group_is_killed_as_a_whole_where_the_kernel_can() {
    // The process is not in any group; its pid only stands where the kernel would list it. What
    // shows is that the whole group is told to die, and that one that stays is named.
    let mut bystander = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let machine = v2_machine().with(&[
        ("kubepods/pod1/cgroup.procs", &format!("{}\n", bystander.id())),
        ("kubepods/pod1/cgroup.kill", ""),
    ]);
    let error = machine.v2("/").destroy(Path::new(POD)).unwrap_err();
    let left_alone = bystander.try_wait().unwrap().is_none();
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(left_alone);
    assert_eq!(
        machine.read(&["kubepods/pod1/cgroup.kill"]),
        texts(&[("kubepods/pod1/cgroup.kill", "1")])
    );
    let text = error.to_string();
    assert!(
        text.contains(POD) && text.contains(&format!("process {} (sleep)", bystander.id())),
        "{text}"
    );
}

#[test]
fn the_group_of_this_process_is_not_destroyed() {
    let own = format!("{}\n", std::process::id());
    let machine = v2_machine()
        .with(&[("kubepods/pod1/cgroup.procs", &own), ("kubepods/pod1/cgroup.kill", "")]);
    let error = machine.v2("/").destroy(Path::new(POD)).unwrap_err();
    assert!(matches!(error, CgroupError::Ourselves { .. }), "{error}");
    assert_eq!(
        machine.read(&["kubepods/pod1/cgroup.kill"]),
        texts(&[("kubepods/pod1/cgroup.kill", "")])
    );
}

#[test]
fn without_a_free_descriptor_a_group_is_killed_all_the_same() {
    const INNER: &str = "OARSMAN_TEST_WITH_FEW_DESCRIPTORS";
    if std::env::var_os(INNER).is_none() {
        // The limit is one of a process: this test runs in one of its own.
        let name = "cgroups::tests::fake_hierarchies::without_a_free_descriptor_a_group_is_killed_all_the_same";
        let mut child = std::process::Command::new("sh");
        child.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]);
        child.arg(std::env::current_exe().unwrap()).args(["--exact", name]).env(INNER, "1");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    let mut bystander = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let machine = v2_machine().with(&[
        ("kubepods/pod1/cgroup.procs", &format!("{}\n", bystander.id())),
        ("kubepods/pod1/cgroup.kill", ""),
    ]);
    let cgroups = machine.v2("/");
    let opened: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).take(100).collect();
    assert!(opened.len() < 100);
    let error = cgroups.destroy(Path::new(POD)).unwrap_err();
    drop(opened);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(matches!(error, CgroupError::Survivor { .. }), "{error}");
    assert_eq!(
        machine.read(&["kubepods/pod1/cgroup.kill"]),
        texts(&[("kubepods/pod1/cgroup.kill", "1")])
    );
}
