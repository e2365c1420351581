//! Trees of machines as directories, with what their kernels wrote.

use std::cell::RefCell;

use tempfile::TempDir;

use super::*;

const GROUP: &str = "/kubepods/burstable/pod1/one";

fn v1(names: &[&str]) -> HierarchyKind {
    HierarchyKind::V1(names.iter().map(|name| (*name).to_owned()).collect())
}

fn trees(kinds: &[HierarchyKind]) -> Vec<Hierarchy> {
    let tree = |(number, kind): (usize, &HierarchyKind)| Hierarchy {
        kind: kind.clone(),
        root: format!("/{number}").into(),
    };
    kinds.iter().enumerate().map(tree).collect()
}

/// A machine with one tree, in which that container has these files.
fn unified(files: &[(&str, &str)]) -> (TempDir, ContainerCgroups) {
    machine(HierarchyKind::V2, files)
}

fn machine(kind: HierarchyKind, files: &[(&str, &str)]) -> (TempDir, ContainerCgroups) {
    let directory = tempfile::tempdir().unwrap();
    let tree = Hierarchy { kind, root: directory.path().to_owned() };
    for (file, text) in files {
        let path = tree.directory(Path::new(GROUP)).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let cgroups = ContainerCgroups::among(&[tree]);
    (directory, cgroups)
}

#[test]
fn each_layout_has_a_tree_for_processes_and_one_for_memory() {
    let v2 = HierarchyKind::V2;
    let rows: [(Vec<HierarchyKind>, Option<&str>, Option<&str>); 6] = [
        (vec![v2.clone()], Some("/0"), Some("/0")),
        (vec![v1(&["name=systemd"]), v2.clone()], Some("/1"), Some("/1")),
        (
            vec![v1(&["memory"]), v1(&["devices"]), v1(&["freezer"]), v2.clone()],
            Some("/2"),
            Some("/0"),
        ),
        (vec![v1(&["cpu", "cpuacct"]), v1(&["memory"]), v1(&["devices"])], Some("/2"), Some("/1")),
        // Beside v1 the tree of version 2 has no processes of containers.
        (vec![v1(&["memory"]), v2], None, Some("/0")),
        (vec![], None, None),
    ];
    for (kinds, processes, memory) in rows {
        let found = ContainerCgroups::among(&trees(&kinds));
        let root = |tree: Option<Hierarchy>| tree.map(|tree| tree.root);
        assert_eq!(root(found.processes), processes.map(PathBuf::from), "{kinds:?}");
        assert_eq!(root(found.memory), memory.map(PathBuf::from), "{kinds:?}");
    }
}

#[test]
fn a_kill_for_want_of_memory_is_read_where_each_version_counts_it() {
    let v2 = |kills| format!("low 0\nhigh 0\nmax 12\noom 1\noom_kill {kills}\noom_group_kill 0\n");
    let control = |kills| format!("oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n");
    let memory = || v1(&["memory"]);
    let rows = [
        (HierarchyKind::V2, "memory.events", v2(0), false),
        (HierarchyKind::V2, "memory.events", v2(1), true),
        (HierarchyKind::V2, "memory.events", v2(10), true),
        // Of the group alone, without execs that have one of their own.
        (HierarchyKind::V2, "memory.events.local", v2(1), false),
        (HierarchyKind::V2, "memory.oom_control", control(1), false),
        (HierarchyKind::V2, "memory.events", String::new(), false),
        (memory(), "memory.oom_control", control(0), false),
        (memory(), "memory.oom_control", control(3), true),
        (memory(), "memory.oom_control", "oom_kill_disable 1\nunder_oom 1\n".to_owned(), false),
        (memory(), "memory.events", v2(1), false),
    ];
    for (kind, file, text, expected) in rows {
        let (_directory, cgroups) = machine(kind.clone(), &[(file, &text)]);
        assert_eq!(cgroups.had_oom_kill(Path::new(GROUP)), expected, "{kind:?} {file} {text}");
        assert!(!cgroups.had_oom_kill(Path::new("/kubepods/burstable/pod1/two")), "{file}");
    }
}

#[test]
fn a_signal_is_sent_to_a_container_with_its_execs_and_to_no_other() {
    let (directory, cgroups) = unified(&[
        ("cgroup.procs", "71\n72\n"),
        ("exec-4/cgroup.procs", "90\n"),
        ("exec-5/cgroup.procs", ""),
        ("made-by-the-program/deep/cgroup.procs", "95\n"),
        ("../two/cgroup.procs", "200\n"),
        ("../cgroup.procs", ""),
    ]);
    let sent = RefCell::new(Vec::new());
    cgroups.signal_container(Path::new(GROUP), |pid| sent.borrow_mut().push(pid));
    assert_eq!(sent.take(), [71, 72, 90, 95]);
    cgroups.signal_container(Path::new("/kubepods/none"), |pid| sent.borrow_mut().push(pid));
    assert_eq!(sent.take(), [0; 0]);
    drop(directory);
}

#[test]
fn an_exec_has_a_group_below_that_of_its_container() {
    let (directory, cgroups) = unified(&[
        ("cgroup.procs", "71\n"),
        // One of another pid namespace is shown as 0, and cannot be signalled.
        ("exec-4/cgroup.procs", "90\n0\n91\n"),
        ("exec-5/cgroup.procs", ""),
    ]);
    let group = |name| cgroups.exec_group(Path::new(GROUP), name).unwrap();
    let expected = directory.path().join("kubepods/burstable/pod1/one/exec-4");
    assert_eq!(group("exec-4"), expected);
    assert_eq!(members(&group("exec-4")), [90, 91]);
    assert!(!is_exec_gone(&group("exec-4")));
    assert!(is_exec_gone(&group("exec-5")) && is_exec_gone(&group("none")));
    assert_eq!(ContainerCgroups::among(&[]).exec_group(Path::new(GROUP), "exec-4"), None);
}

#[test]
fn what_an_exec_leaves_is_moved_to_its_container() {
    let (_directory, cgroups) = unified(&[("cgroup.procs", ""), ("exec-4/cgroup.procs", "90\n")]);
    let group = |name| cgroups.exec_group(Path::new(GROUP), name).unwrap();
    release_exec(&group("exec-4"));
    let of_container = group("exec-4").parent().unwrap().join("cgroup.procs");
    assert_eq!(fs::read_to_string(&of_container).unwrap(), "90");
    // An empty one is removed, and the container keeps what it has. A kernel's group has no real files, which is what this directory is like.
    fs::create_dir(group("exec-5")).unwrap();
    release_exec(&group("exec-5"));
    assert!(!group("exec-5").exists() && of_container.exists());
}
