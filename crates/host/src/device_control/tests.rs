//! Programs in the real kernel, and groups of our own in its v2 tree.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use super::*;
use crate::cgroups::hierarchies;
use crate::mounts;

/// A number for local use, of which no machine has a disk: a test that fails opens none. The group is asked before the driver.
const DISK: (u32, u32) = (240, 0);

/// A group of the v2 tree, with one below it. Both are removed at the end.
struct TestGroup {
    tree: Hierarchy,
    path: PathBuf,
    files: tempfile::TempDir,
}

impl TestGroup {
    /// None where this cannot be tested, which is told, and is no success on a machine that has to be able to.
    fn new(test: &str) -> Option<Self> {
        let all = hierarchies(&mounts::current().unwrap());
        let tree = all.into_iter().find(|one| one.kind == HierarchyKind::V2);
        let Some(tree) = tree.filter(|_| rustix::process::getuid().is_root()) else {
            eprintln!("not tested: it needs root and a cgroup2 tree");
            return None;
        };
        if let Err(error) = probe() {
            // A kernel that has what it takes, and refuses all the same, is a failure.
            assert!(!is_built_in(), "{error}");
            eprintln!("not tested: {error}");
            return None;
        }
        let path = PathBuf::from(format!("/oarsman-test-devices-{}-{test}", std::process::id()));
        tree.create(&path.join("below")).unwrap();
        let files = tempfile::tempdir().unwrap();
        let mode = Mode::from_raw_mode(0o600);
        let disk = makedev(DISK.0, DISK.1);
        mknodat(CWD, files.path().join("disk"), FileType::BlockDevice, mode, disk).unwrap();
        Some(Self { tree, path, files })
    }

    fn directory(&self, group: &str) -> PathBuf {
        self.tree.directory(&self.path.join(group))
    }

    fn set(&self, texts: &[(bool, DeviceKind, i32, i32, &str)]) {
        let rule = |(allow, kind, major, minor, access): &(_, _, _, _, &str)| DeviceRule {
            allow: *allow,
            kind: Some(*kind),
            major: Some(*major),
            minor: Some(*minor),
            access: DeviceAccess::parse(access).unwrap(),
        };
        apply(&self.directory(""), &texts.iter().map(rule).collect::<Vec<_>>()).unwrap();
    }

    fn programs(&self) -> usize {
        kernel::attached(&File::open(self.directory("")).unwrap()).unwrap().len()
    }

    /// What a process of a group may do: the answers of a shell, after which it has ended.
    fn says(&self, group: &str, script: &str) -> String {
        let script = format!("echo 0 > {}/cgroup.procs; {script}", self.directory(group).display());
        let mut shell = Command::new("sh");
        shell.current_dir(self.files.path()).env("LC_ALL", "C").stdin(Stdio::null());
        let output = shell.args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for TestGroup {
    fn drop(&mut self) {
        let removed = self.tree.remove(&self.path);
        if !std::thread::panicking() {
            removed.unwrap();
        }
    }
}

/// Whether the kernel says that it has what it takes. One that says nothing may lack it.
fn is_built_in() -> bool {
    let config = Command::new("zcat").arg("/proc/config.gz").output();
    let text = config.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().any(|line| line == "CONFIG_CGROUP_BPF=y")
}

/// Reads from and writes to what is allowed, and tells which is refused in which words.
const TRY: &str = "r() { if (exec < $1) 2>error; then echo $1 read; else echo $1 $(sed 's/.*: //' error); fi; }; \
    w() { if (exec > $1) 2>error; then echo $1 written; else echo $1 $(sed 's/.*: //' error); fi; }; ";

#[test]
fn a_process_uses_the_devices_that_its_group_allows_and_no_others() {
    let Some(group) = TestGroup::new("use") else { return };
    let disk = group.files.path().join("disk");
    assert!(fs::metadata(&disk).unwrap().file_type().is_block_device());
    assert_eq!(File::open(&disk).unwrap_err().raw_os_error(), Some(libc::ENXIO));
    let null = (true, DeviceKind::Character, 1, 3, "rw");
    group.set(&[null]);
    assert_eq!(group.programs(), 1);
    let script = format!("{TRY} r /dev/null; w /dev/null; r disk; w disk; r /dev/zero");
    let expected = "/dev/null read\n/dev/null written\ndisk Operation not permitted\ndisk Operation not permitted\n\
                    /dev/zero Operation not permitted\n";
    assert_eq!(group.says("", &script), expected);
    // A group below has the rules of those above.
    assert_eq!(group.says("below", &script), expected);
    let node = "mknod made b 240 0 2>/dev/null || echo no node";
    assert_eq!(group.says("", node), "no node\n");
    // Others are not concerned.
    assert!(File::open("/dev/zero").is_ok());
}

#[test]
fn rules_are_replaced_and_a_group_that_allows_everything_has_no_program() {
    let Some(group) = TestGroup::new("replace") else { return };
    let (null, zero) = ((1, 3), (1, 5));
    let allow =
        |(major, minor): (i32, i32), access| (true, DeviceKind::Character, major, minor, access);
    let script = format!("{TRY} r /dev/null; w /dev/null; r /dev/zero");
    let refused = "Operation not permitted";
    group.set(&[allow(null, "rw")]);
    let expected = format!("/dev/null read\n/dev/null written\n/dev/zero {refused}\n");
    assert_eq!(group.says("", &script), expected);
    group.set(&[allow(null, "r"), allow(zero, "rwm")]);
    assert_eq!(group.programs(), 1);
    let expected = format!("/dev/null read\n/dev/null {refused}\n/dev/zero read\n");
    assert_eq!(group.says("", &script), expected);
    apply(&group.directory(""), &[DeviceRule::about_everything(true)]).unwrap();
    assert_eq!(group.programs(), 0);
    let expected = "/dev/null read\n/dev/null written\n/dev/zero read\n";
    assert_eq!(group.says("", &script), expected);
    apply(&group.directory(""), &[]).unwrap();
    assert_eq!(group.says("", "echo 2>/dev/null < /dev/null || echo nothing"), "nothing\n");
}

#[test]
fn a_group_takes_as_many_rules_as_a_container_can_have() {
    let Some(group) = TestGroup::new("many") else { return };
    let kinds = [DeviceKind::Block, DeviceKind::Character];
    let accesses = ["rwm", "r", "rw", "m"];
    let rule = |number: i32| {
        let at = usize::try_from(number).unwrap();
        // The kernel takes seconds for as many that are about a part.
        let access = if at < 200 { accesses[at / 2 % 4] } else { "rwm" };
        let kind = kinds[at % 2];
        (number % 7 != 0, kind, number % 250, number / 3, access)
    };
    let mut all: Vec<_> = (2..4096).map(rule).collect();
    all.push((true, DeviceKind::Character, 1, 3, "rwm"));
    all.rotate_right(1);
    group.set(&all);
    let script = format!("{TRY} r /dev/null; r disk");
    assert_eq!(group.says("", &script), "/dev/null read\ndisk Operation not permitted\n");
}

#[test]
fn a_group_that_is_none_is_named() {
    let files = tempfile::tempdir().unwrap();
    let error = apply(&files.path().join("none"), &[]).unwrap_err().to_string();
    assert!(error.contains("none: No such file"), "{error}");
    if rustix::process::getuid().is_root() && probe().is_ok() {
        let error = apply(files.path(), &[]).unwrap_err().to_string();
        assert!(error.contains("a group of version 2"), "{error}");
    }
}

#[test]
fn what_is_missing_is_told() {
    let rows = [
        (libc::EPERM, "CAP_BPF"),
        (libc::EINVAL, "CONFIG_CGROUP_BPF"),
        (libc::ENOSYS, "CONFIG_BPF_SYSCALL"),
        (libc::E2BIG, "more rules"),
    ];
    for (number, expected) in rows {
        let source = io::Error::from_raw_os_error(number);
        let text = DeviceControlError::Load { source }.to_string();
        assert!(text.contains(expected), "{text}");
    }
    let rows =
        [(libc::EPERM, "group above"), (libc::EINVAL, "version 2"), (libc::E2BIG, "as many")];
    for (number, expected) in rows {
        let source = io::Error::from_raw_os_error(number);
        let text = DeviceControlError::Attach { group: "/group".into(), source }.to_string();
        assert!(text.contains("/group") && text.contains(expected), "{text}");
    }
}

#[test]
fn programs_are_taken_where_no_tree_of_v1_has_the_controller() {
    let v1 = |names: &[&str]| Hierarchy {
        kind: HierarchyKind::V1(names.iter().map(|name| (*name).to_owned()).collect()),
        root: "/v1".into(),
    };
    let v2 = || Hierarchy { kind: HierarchyKind::V2, root: "/v2".into() };
    let rows = [
        (vec![v2()], true),
        (vec![v1(&["name=systemd"]), v2()], true),
        (vec![v1(&["cpu", "cpuacct"]), v1(&["devices"]), v2()], false),
        (vec![v1(&["freezer", "devices"])], false),
    ];
    for (all, expected) in rows {
        assert_eq!(takes_programs(&all), expected, "{all:?}");
    }
}
