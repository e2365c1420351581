//! Cgroups of pods on this machine, each test below a root of its own.

use oarsman_core::resources::names::CgroupDriver;

use super::*;
use crate::cgroups::hierarchies;
use crate::mounts;

fn pod(uid: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.uid = Some(uid.to_owned());
    pod.spec = Some(Default::default());
    pod
}

/// Removes the cgroups of a test also when it fails.
struct TestCgroupRoot(String);

impl Drop for TestCgroupRoot {
    fn drop(&mut self) {
        let root = Path::new(&self.0);
        CgroupManager::discover(root).unwrap().destroy(root).unwrap();
    }
}

#[tokio::test]
async fn a_pods_cgroup_is_there_until_it_is_removed_and_run_mode_leaves_none_behind() {
    let root = TestCgroupRoot(format!("/oarsman-pod-cgroups-{}", std::process::id()));
    let cgroups = HostCgroups::open(CgroupSettings {
        names: CgroupNames::new(CgroupDriver::Cgroupfs, &root.0),
        resources: NodeResources::of_memory(1 << 30),
        is_run_mode: true,
    })
    .unwrap();
    let (a, uid) = (pod("a"), PodUid::from("a"));
    for _ in 0..2 {
        cgroups.ensure(&a).await.unwrap();
    }
    assert!(cgroups.update(&a).await.unwrap());
    assert_eq!(cgroups.pods().await.unwrap(), BTreeSet::from([uid.clone()]));
    for _ in 0..2 {
        cgroups.remove(&uid).await.unwrap();
    }
    assert!(!cgroups.update(&a).await.unwrap());
    let left = hierarchies(&mounts::current().unwrap());
    let left = left.iter().map(|hierarchy| hierarchy.directory(Path::new(&root.0)));
    assert_eq!(left.filter(|directory| directory.exists()).count(), 0, "run mode leaves no group");
    cgroups.ensure(&a).await.unwrap();
    assert!(cgroups.update(&a).await.unwrap(), "and makes them anew");
    let group = PathBuf::from(CgroupNames::new(CgroupDriver::Cgroupfs, &root.0).of_pod(&a));
    let of_pod: Vec<_> = hierarchies(&mounts::current().unwrap())
        .iter()
        .map(|hierarchy| hierarchy.directory(&group))
        .filter(|directory| directory.exists())
        .collect();
    std::fs::remove_dir(&of_pod[0]).unwrap();
    assert!(!cgroups.update(&a).await.unwrap(), "one hierarchy lacks it");
    assert!(!of_pod[0].exists(), "an update makes no group");
}
