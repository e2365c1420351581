//! Trees of machines as directories, and what a container sees of them.

use oci_spec::runtime::MountBuilder;

use super::*;

fn mount() -> Mount {
    let options = ["nosuid", "noexec", "nodev", "ro"].map(str::to_owned).to_vec();
    let mount = MountBuilder::default().destination("/sys/fs/cgroup").typ("cgroup");
    mount.source("cgroup").options(options).build().unwrap()
}

fn tree(root: &Path, names: &[&str]) -> Hierarchy {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Hierarchy { kind: HierarchyKind::V1(names), root: root.to_owned() }
}

fn unified(root: &Path) -> Hierarchy {
    Hierarchy { kind: HierarchyKind::V2, root: root.to_owned() }
}

#[test]
fn of_version_2_libcontainer_makes_the_mount() {
    let place = Path::new("/sys/fs/cgroup");
    let rows = [
        vec![unified(place)],
        // A tree of systemd's, which controls nothing.
        vec![tree(&place.join("systemd"), &["name=systemd"]), unified(place)],
        vec![],
    ];
    for all in rows {
        let mut asked = mount();
        let taken = CgroupMount::of(&all, &mut asked, Path::new("/pod1/one")).unwrap();
        assert!(taken.is_none(), "{all:?}");
        assert_eq!(asked, mount(), "{all:?}");
    }
}

#[test]
fn of_version_1_trees_with_controllers_are_mounted() {
    let place = Path::new("/sys/fs/cgroup");
    let all = [
        tree(&place.join("cpu,cpuacct"), &["cpu", "cpuacct"]),
        tree(&place.join("systemd"), &["name=systemd"]),
        tree(&place.join("memory"), &["memory"]),
        tree(&place.join("none"), &[]),
        unified(&place.join("unified")),
    ];
    let found = with_controllers(&all);
    let found: Vec<&Path> = found.iter().map(|(tree, _)| tree.root.as_path()).collect();
    assert_eq!(found, [place.join("cpu,cpuacct"), place.join("memory")]);
}

#[test]
fn of_version_1_a_container_gets_its_own_group_of_each_tree() {
    if !rustix::process::getuid().is_root() {
        eprintln!("not tested: only root prepares mounts");
        return;
    }
    let files = tempfile::tempdir().unwrap();
    let at = |name: &str| files.path().join(name);
    let all = [
        tree(&at("cpu,cpuacct"), &["cpu", "cpuacct"]),
        tree(&at("memory"), &["memory"]),
        unified(&at("unified")),
    ];
    let mut asked = mount();
    let taken = CgroupMount::of(&all, &mut asked, Path::new("/pod1/one")).unwrap().unwrap();
    assert_eq!(
        (asked.typ().as_deref(), asked.source().as_deref()),
        (Some("tmpfs"), Some(Path::new("tmpfs")))
    );
    assert!(!asked.options().iter().flatten().any(|option| option == "ro"));
    assert!(taken.is_read_only);
    let destinations: Vec<&Path> =
        taken.groups.iter().map(|group| group.destination.as_path()).collect();
    let inside = Path::new("/sys/fs/cgroup");
    assert_eq!(destinations, [inside.join("cpu,cpuacct"), inside.join("memory")]);
    let link = |name: &str| (inside.join(name), "cpu,cpuacct".to_owned());
    assert_eq!(taken.links, [link("cpu"), link("cpuacct")]);
    assert!(at("memory/pod1/one").is_dir() && !at("unified").exists());
}
