//! Persistent volumes of the node: mounted, kept over everything, and never removed.

use std::path::PathBuf;
use std::process::Command;

use k8s_openapi::api::core::v1::{
    LocalVolumeSource, PersistentVolume, PersistentVolumeClaimVolumeSource, PersistentVolumeSpec,
};
use oarsman_core::persistent_volume::{ClaimedVolume, PersistentVolumePlugin};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::*;

const PLUGIN: &str = "kubernetes.io/local-volume";

/// A node with a root directory and a directory of data, of which a pod has a claim.
struct LocalNode {
    directory: tempfile::TempDir,
    pod: Pod,
    claimed: ClaimedVolumes,
}

impl LocalNode {
    fn new(edit: impl FnOnce(&mut PersistentVolumeSpec)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("data/deep")).unwrap();
        fs::write(directory.path().join("data/deep/kept"), "precious").unwrap();
        let path = directory.path().join("data").display().to_string();
        let local = Some(LocalVolumeSource { path, fs_type: None });
        let mut spec = PersistentVolumeSpec { local, ..PersistentVolumeSpec::default() };
        edit(&mut spec);
        let plugin = match &spec.host_path {
            Some(_) => PersistentVolumePlugin::HostPath,
            None => PersistentVolumePlugin::Local,
        };
        let mut volume = PersistentVolume { spec: Some(spec), ..PersistentVolume::default() };
        volume.metadata.name = Some("pv-1".to_owned());
        let claimed = ClaimedVolume { volume: Arc::new(volume), plugin, read_only: false };
        let source = Some(PersistentVolumeClaimVolumeSource::default());
        let name = "disk".to_owned();
        let volume = Volume { name, persistent_volume_claim: source, ..Volume::default() };
        let claimed = ClaimedVolumes::from([("disk".to_owned(), Arc::new(claimed))]);
        Self { directory, pod: pod(vec![volume]), claimed }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }

    fn path(&self) -> PathBuf {
        paths(&self.root()).volume(PLUGIN, "pv-1")
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    async fn set_up(&self) -> Result<(), VolumeError> {
        self.set_up_for(&self.pod).await
    }

    async fn set_up_for(&self, pod: &Pod) -> Result<(), VolumeError> {
        let desired = DesiredStateOfWorld::of(pod, Payloads::new(), &self.claimed);
        let todo = reconcile(&desired, &ActualStateOfWorld::default());
        volumes_in(&self.root()).set_up(&Arc::new(pod.clone()), todo.set_up).await
    }

    fn assert_kept(&self) {
        let kept = fs::read_to_string(self.data().join("deep/kept")).unwrap();
        assert_eq!(kept, "precious");
    }
}

/// What is left mounted is unmounted before the directory is removed.
impl Drop for LocalNode {
    fn drop(&mut self) {
        let all = mounts::current().unwrap_or_default();
        for mount in mounts::beneath(&all, self.directory.path()).collect::<Vec<_>>().iter().rev() {
            rustix::mount::unmount(&mount.point, UnmountFlags::DETACH).ok();
        }
    }
}

#[tokio::test]
async fn a_local_volume_is_the_directory_of_the_node_and_outlives_its_pod() {
    let node = LocalNode::new(|_| ());
    for _ in 0..2 {
        node.set_up().await.unwrap();
    }
    let all = mounts::current().unwrap();
    assert_eq!(all.iter().filter(|mount| mount.point == node.path()).count(), 1, "mounted once");
    fs::write(node.path().join("written"), "by the pod").unwrap();
    for _ in 0..2 {
        tear_down(&node.root()).await.unwrap();
    }
    assert!(!node.path().exists());
    assert_eq!(fs::read_to_string(node.data().join("written")).unwrap(), "by the pod");
    node.assert_kept();
}

#[tokio::test]
async fn a_directory_that_is_not_empty_though_nothing_is_mounted_is_never_removed() {
    let node = LocalNode::new(|_| ());
    // As after a crash before the mount, and with something written into the wrong place.
    fs::create_dir_all(node.path()).unwrap();
    fs::write(node.path().join("stray"), "whose?").unwrap();
    let said = tear_down(&node.root()).await.unwrap_err().to_string();
    assert!(said.contains("is not empty though nothing is mounted there"), "{said}");
    assert!(node.path().join("stray").exists());
    fs::remove_file(node.path().join("stray")).unwrap();
    tear_down(&node.root()).await.unwrap();
    assert!(!node.path().exists());
}

/// Every state that a kill between two steps of set-up and tear-down leaves: the next agent goes on from there, and the data stay.
#[tokio::test]
async fn after_a_kill_at_any_step_the_next_agent_sets_up_or_tears_down_and_nothing_is_lost() {
    type Step = fn(&LocalNode);
    let steps: [(&str, Step); 5] = [
        ("nothing", |_| ()),
        ("directory begun", |node| {
            fs::create_dir_all(node.path().with_file_name(".new-pv-1")).unwrap();
        }),
        ("directory made", |node| fs::create_dir_all(node.path()).unwrap()),
        ("mounted", |node| {
            fs::create_dir_all(node.path()).unwrap();
            rustix::mount::mount_bind(node.data(), node.path()).unwrap();
        }),
        ("mounted twice", |node| {
            fs::create_dir_all(node.path()).unwrap();
            for _ in 0..2 {
                rustix::mount::mount_bind(node.data(), node.path()).unwrap();
            }
        }),
    ];
    for (name, step) in steps {
        for sets_up_again in [false, true] {
            let node = LocalNode::new(|_| ());
            step(&node);
            if sets_up_again {
                node.set_up().await.unwrap();
                assert!(node.path().join("deep/kept").exists(), "{name}");
            }
            tear_down(&node.root()).await.unwrap();
            assert!(!is_mounted(&node.path()) && !node.path().exists(), "{name}");
            node.assert_kept();
        }
    }
}

#[tokio::test]
async fn a_volume_that_is_in_use_stays_mounted_and_is_torn_down_later() {
    let node = LocalNode::new(|_| ());
    node.set_up().await.unwrap();
    let mut user =
        Command::new("sleep").arg("600").current_dir(node.path()).spawn().expect("sleep");
    let said = tear_down(&node.root()).await.unwrap_err().to_string();
    user.kill().unwrap();
    user.wait().unwrap();
    assert!(said.contains("unmount"), "{said}");
    assert!(is_mounted(&node.path()));
    node.assert_kept();
    tear_down(&node.root()).await.unwrap();
    node.assert_kept();
}

/// Mounts in the directory of the node come and go in the volume, too; unmounting the volume must not take those of the node along.
#[tokio::test]
async fn mounts_of_the_node_in_the_directory_stay_when_the_volume_is_torn_down() {
    let node = LocalNode::new(|_| ());
    let base = node.directory.path();
    rustix::mount::mount_bind(base, base).unwrap();
    rustix::mount::mount_change(base, MountPropagationFlags::SHARED).unwrap();
    node.set_up().await.unwrap();
    let inner = node.data().join("deep");
    rustix::mount::mount("tmpfs", &inner, "tmpfs", MountFlags::empty(), c"").unwrap();
    fs::write(inner.join("of-the-node"), "").unwrap();
    assert!(node.path().join("deep/of-the-node").exists(), "it is seen in the volume");
    tear_down(&node.root()).await.unwrap();
    assert!(!node.path().exists());
    assert!(inner.join("of-the-node").exists(), "the node's own mount is still there");
}

#[tokio::test]
async fn a_claim_that_is_read_only_is_mounted_so_also_after_a_crash_before_that() {
    let mut node = LocalNode::new(|_| ());
    let claimed = ClaimedVolume { read_only: true, ..(*node.claimed["disk"]).clone() };
    node.claimed.insert("disk".to_owned(), Arc::new(claimed));
    fs::create_dir_all(node.path()).unwrap();
    rustix::mount::mount_bind(node.data(), node.path()).unwrap();
    node.set_up().await.unwrap();
    let refused = fs::write(node.path().join("written"), "").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ReadOnlyFilesystem);
    fs::write(node.data().join("written"), "").unwrap();
    tear_down(&node.root()).await.unwrap();
    node.assert_kept();
}

#[tokio::test]
async fn the_first_pod_of_a_volume_says_its_group_and_the_next_does_not_change_it() {
    let node = LocalNode::new(|_| ());
    let with_group = |uid: &str, group: i64| {
        let mut pod = node.pod.clone();
        pod.metadata.uid = Some(uid.to_owned());
        let context = PodSecurityContext { fs_group: Some(group), ..PodSecurityContext::default() };
        pod.spec.as_mut().unwrap().security_context = Some(context);
        pod
    };
    node.set_up_for(&with_group("u", 1234)).await.unwrap();
    assert_eq!(fs::metadata(node.data()).unwrap().gid(), 1234);
    node.set_up_for(&with_group("v", 5678)).await.unwrap();
    assert_eq!(fs::metadata(node.data()).unwrap().gid(), 1234, "another pod uses it");
    let volumes = volumes_in(&node.root());
    for uid in ["u", "v"].map(PodUid::from) {
        volumes.tear_down(&uid, volumes.mounted(&uid).await.unwrap()).await.unwrap();
    }
    node.set_up_for(&with_group("v", 5678)).await.unwrap();
    assert_eq!(fs::metadata(node.data()).unwrap().gid(), 5678);
}

#[tokio::test]
async fn only_a_directory_of_the_node_can_be_a_local_volume() {
    let local = |spec: &mut PersistentVolumeSpec, path: &str| {
        spec.local = Some(LocalVolumeSource { path: path.to_owned(), fs_type: None });
    };
    for (path, why) in [
        ("/nonexistent/of/local/volumes", "does not exist on this node"),
        ("/etc/hostname", "is not a directory"),
        ("/dev/null", "is not a directory"),
        ("/var/../etc", "must be an absolute path without `..`"),
        ("relative", "must be an absolute path"),
    ] {
        let node = LocalNode::new(|spec| local(spec, path));
        let said = node.set_up().await.unwrap_err().to_string();
        assert!(said.contains(why) && said.contains("\"disk\""), "{said}");
        assert!(!is_mounted(&node.path()));
        tear_down(&node.root()).await.unwrap();
    }
}

#[tokio::test]
async fn a_persistent_host_path_is_checked_and_left_where_it_is() {
    let host_path = |type_: &str| {
        let source =
            HostPathVolumeSource { path: "/etc".to_owned(), type_: Some(type_.to_owned()) };
        LocalNode::new(|spec| {
            spec.local = None;
            spec.host_path = Some(source);
        })
    };
    host_path("Directory").set_up().await.unwrap();
    let node = host_path("File");
    let said = node.set_up().await.unwrap_err().to_string();
    assert!(said.contains("/etc is not a file"), "{said}");
    assert!(volumes_in(&node.root()).mounted(&PodUid::from("u")).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_volume_of_another_plugin_with_the_same_name_is_torn_down_beside_it() {
    let mut node = LocalNode::new(|_| ());
    let volumes = node.pod.spec.as_mut().unwrap().volumes.as_mut().unwrap();
    volumes.push(empty_dir("pv-1", EmptyDirVolumeSource::default()));
    let mounts = node.pod.spec.as_mut().unwrap().containers[0].volume_mounts.as_mut().unwrap();
    mounts.push(VolumeMount { name: "pv-1".to_owned(), ..VolumeMount::default() });
    node.set_up().await.unwrap();
    let scratch = paths(&node.root()).volume("kubernetes.io/empty-dir", "pv-1");
    assert!(is_mounted(&node.path()) && scratch.exists());
    let found = volumes_in(&node.root()).mounted(&PodUid::from("u")).await.unwrap();
    let todo = reconcile(&DesiredStateOfWorld::default(), &ActualStateOfWorld::found(found));
    assert_eq!(todo.tear_down.len(), 2);
    volumes_in(&node.root()).tear_down(&PodUid::from("u"), todo.tear_down).await.unwrap();
    assert!(!node.path().exists() && !scratch.exists());
    node.assert_kept();
}
