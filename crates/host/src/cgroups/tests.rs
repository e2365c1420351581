//! The three layouts of hierarchies, on directories in place of groups.

mod fake_hierarchies;
mod real;

use super::*;
use crate::mounts;

fn v1(name: &str) -> Hierarchy {
    let controller = if name == "systemd" { "name=systemd" } else { name };
    Hierarchy {
        kind: HierarchyKind::V1(vec![controller.to_owned()]),
        root: Path::new("/sys/fs/cgroup").join(name),
    }
}

#[test]
fn a_hybrid_machine_has_a_tree_for_each_v1_controller_and_a_v2_tree() {
    let mounts = mounts::parse(include_bytes!("../mounts/hybrid.mountinfo")).unwrap();
    let names =
        ["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"];
    let mut expected: Vec<Hierarchy> = names.into_iter().map(v1).collect();
    expected.push(Hierarchy { kind: HierarchyKind::V2, root: "/sys/fs/cgroup/unified".into() });
    assert_eq!(hierarchies(&mounts), expected);
}

#[test]
fn a_unified_machine_has_one_tree() {
    let mounts = mounts::parse(include_bytes!("../mounts/unified.mountinfo")).unwrap();
    let expected = Hierarchy { kind: HierarchyKind::V2, root: "/sys/fs/cgroup".into() };
    assert_eq!(hierarchies(&mounts), [expected]);
}

#[test]
fn the_controllers_of_a_v1_tree_are_told_from_its_other_options() {
    let rows: &[(&str, &[&str])] = &[
        ("rw,cpu,cpuacct", &["cpu", "cpuacct"]),
        ("rw,xattr,name=systemd,release_agent=/lib/x", &["name=systemd"]),
        ("rw,seclabel,net_cls,net_prio", &["net_cls", "net_prio"]),
        ("rw,clone_children", &[]),
    ];
    for (options, controllers) in rows {
        let line = format!("1 0 0:1 / /c rw - cgroup cgroup {options}\n");
        let found = hierarchies(&mounts::parse(line.as_bytes()).unwrap());
        let expected =
            HierarchyKind::V1(controllers.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(found[0].kind, expected, "{options}");
    }
}

#[test]
fn a_tree_that_is_mounted_twice_counts_once() {
    let text =
        b"1 0 0:1 / /first rw - cgroup2 cgroup2 rw\n2 0 0:1 / /again rw - cgroup2 cgroup2 rw\n";
    let found = hierarchies(&mounts::parse(text).unwrap());
    assert_eq!(found, [Hierarchy { kind: HierarchyKind::V2, root: "/first".into() }]);
}

fn tree() -> (tempfile::TempDir, Hierarchy) {
    let directory = tempfile::tempdir().unwrap();
    let hierarchy = Hierarchy { kind: HierarchyKind::V2, root: directory.path().to_owned() };
    for group in ["/a/b/c", "/a/d", "/e"] {
        hierarchy.create(Path::new(group)).unwrap();
    }
    (directory, hierarchy)
}

fn paths(groups: &[&str]) -> BTreeSet<PathBuf> {
    groups.iter().map(PathBuf::from).collect()
}

#[test]
fn groups_are_listed_with_their_parents() {
    let (_directory, hierarchy) = tree();
    assert_eq!(hierarchy.groups().unwrap(), paths(&["/a", "/a/b", "/a/b/c", "/a/d", "/e"]));
}

#[test]
fn a_group_is_removed_with_what_is_below_it_and_nothing_else() {
    let (_directory, hierarchy) = tree();
    hierarchy.remove(Path::new("/a")).unwrap();
    assert_eq!(hierarchy.groups().unwrap(), paths(&["/e"]));
    hierarchy.remove(Path::new("/a")).unwrap();
}

#[test]
fn a_group_that_cannot_be_removed_is_named() {
    let (_directory, hierarchy) = tree();
    let busy = hierarchy.directory(Path::new("/a/b"));
    fs::write(busy.join("file"), "").unwrap();
    assert_eq!(hierarchy.remove(Path::new("/a")).unwrap_err().group, busy);
}

#[test]
fn processes_are_gathered_from_the_whole_subtree() {
    let (_directory, hierarchy) = tree();
    let rows = [("/a", "1\n"), ("/a/b/c", "7\n8\n"), ("/e", "9\n")];
    for (group, pids) in rows {
        fs::write(hierarchy.directory(Path::new(group)).join("cgroup.procs"), pids).unwrap();
    }
    assert_eq!(hierarchy.processes(Path::new("/a")).unwrap(), BTreeSet::from([1, 7, 8]));
    assert_eq!(hierarchy.processes(Path::new("/none")).unwrap(), BTreeSet::new());
}

#[test]
fn a_group_path_cannot_lead_out_of_its_tree() {
    let (_directory, hierarchy) = tree();
    assert_eq!(hierarchy.directory(Path::new("/../../etc")), hierarchy.root.join("etc"));
}
