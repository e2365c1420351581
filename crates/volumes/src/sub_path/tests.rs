//! Parts of volumes through the seam: mounted, found by the next agent, and gone with the pod.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, Pod, PodSecurityContext, PodSpec, Volume, VolumeMount,
};
use oarsman_clock::SystemClock;
use oarsman_core::cri_spec::{Payloads, PodPaths};
use oarsman_core::ids::PodUid;
use oarsman_core::persistent_volume::ClaimedVolumes;
use oarsman_core::volume_manager::{ActualStateOfWorld, DesiredStateOfWorld, reconcile};
use oarsman_crash::kill_at_every_change;
use oarsman_host::mounts;
use tempfile::TempDir;

use super::*;
use crate::{HostVolumes, Volumes};

const EMPTY_DIR: &str = "kubernetes.io/empty-dir";

fn uid() -> PodUid {
    PodUid::from("u")
}

fn paths(root: &Path) -> PodPaths {
    PodPaths::new(root, &uid())
}

fn volumes_in(root: &Path) -> HostVolumes {
    HostVolumes::new(root.to_owned(), Arc::new(SystemClock::start()))
}

fn part(root: &Path, sub_path: &str, index: usize) -> SubPathToMount {
    SubPathToMount {
        volume: "data".to_owned(),
        plugin: EMPTY_DIR.to_owned(),
        container: "app".to_owned(),
        index,
        volume_path: paths(root).volume(EMPTY_DIR, "data"),
        sub_path: sub_path.into(),
    }
}

/// A part of a directory of the host.
fn host_part(volume_path: PathBuf, sub_path: &str) -> SubPathToMount {
    SubPathToMount {
        volume: "host".to_owned(),
        plugin: "kubernetes.io/host-path".to_owned(),
        container: "app".to_owned(),
        index: 7,
        volume_path,
        sub_path: sub_path.into(),
    }
}

/// A pod with an emptyDir on that medium and the group 1234.
fn pod(medium: Option<&str>) -> Arc<Pod> {
    let empty_dir = EmptyDirVolumeSource { medium: medium.map(str::to_owned), size_limit: None };
    let name = "data".to_owned();
    let volume = Volume { name: name.clone(), empty_dir: Some(empty_dir), ..Volume::default() };
    let mounts = vec![VolumeMount { name, ..VolumeMount::default() }];
    let main = Container { volume_mounts: Some(mounts), ..Container::default() };
    let group = PodSecurityContext { fs_group: Some(1234), ..PodSecurityContext::default() };
    let spec = PodSpec {
        containers: vec![main],
        volumes: Some(vec![volume]),
        security_context: Some(group),
        ..PodSpec::default()
    };
    let mut pod = Pod { spec: Some(spec), ..Pod::default() };
    pod.metadata.uid = Some("u".to_owned());
    Arc::new(pod)
}

async fn set_up_volume(root: &Path, medium: Option<&str>) {
    let pod = pod(medium);
    let desired = DesiredStateOfWorld::of(&pod, Payloads::new(), &ClaimedVolumes::new());
    let todo = reconcile(&desired, &ActualStateOfWorld::default());
    volumes_in(root).set_up(&pod, todo.set_up).await.unwrap();
}

/// As the volume manager does when nothing of the pod runs.
async fn tear_down(root: &Path) {
    let volumes = volumes_in(root);
    volumes.tear_down_sub_paths(&uid()).await.unwrap();
    volumes.tear_down(&uid(), volumes.mounted(&uid()).await.unwrap()).await.unwrap();
}

/// The mounts in the pod's directory.
fn mounted(root: &Path) -> Vec<PathBuf> {
    let all = mounts::current().unwrap();
    let root = root.canonicalize().unwrap();
    mounts::beneath(&all, &root).map(|mount| mount.point.clone()).collect()
}

#[tokio::test]
async fn a_part_has_mode_and_group_of_its_volume_and_goes_before_it() {
    // A file system in memory has the sticky bit, as with the Go kubelet.
    for (medium, mode) in [(None, 0o2777), (Some("Memory"), 0o3777)] {
        let root = TempDir::new().unwrap();
        set_up_volume(root.path(), medium).await;
        let wanted = vec![part(root.path(), "a/b", 0), part(root.path(), "c", 3)];
        for _ in 0..3 {
            // Every container that restarts asks again, and so does every agent.
            volumes_in(root.path()).set_up_sub_paths(&uid(), wanted.clone()).await.unwrap();
        }
        let point = paths(root.path()).subpath("data", "app", 0);
        let of_parts = mounted(root.path()).into_iter().filter(|it| it.ends_with("app/0"));
        assert_eq!(of_parts.count(), 1);
        let found = fs::metadata(&point).unwrap();
        assert_eq!((found.permissions().mode() & 0o7777, found.gid()), (mode, 1234));
        let volume = paths(root.path()).volume(EMPTY_DIR, "data");
        fs::write(point.join("f"), "written").unwrap();
        assert_eq!(fs::read_to_string(volume.join("a/b/f")).unwrap(), "written");
        tear_down(root.path()).await;
        tear_down(root.path()).await;
        assert_eq!(mounted(root.path()), Vec::<PathBuf>::new());
        assert!(!paths(root.path()).subpaths().exists() && !volume.exists());
    }
}

#[tokio::test]
async fn of_a_directory_of_the_host_a_part_is_unmounted_and_nothing_is_removed() {
    let (root, host) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    set_up_volume(root.path(), None).await;
    fs::create_dir(host.path().join("dir")).unwrap();
    fs::write(host.path().join("dir/kept"), "kept").unwrap();
    let wanted = vec![host_part(host.path().to_owned(), "dir")];
    volumes_in(root.path()).set_up_sub_paths(&uid(), wanted).await.unwrap();
    let point = paths(root.path()).subpath("host", "app", 7);
    assert_eq!(fs::read_to_string(point.join("kept")).unwrap(), "kept");
    tear_down(root.path()).await;
    assert_eq!(mounted(root.path()), Vec::<PathBuf>::new());
    assert_eq!(fs::read_to_string(host.path().join("dir/kept")).unwrap(), "kept");
}

#[tokio::test]
async fn an_error_names_container_volume_and_path() {
    let root = TempDir::new().unwrap();
    set_up_volume(root.path(), None).await;
    let volume = paths(root.path()).volume(EMPTY_DIR, "data");
    std::os::unix::fs::symlink("/", volume.join("out")).unwrap();
    let wanted = vec![part(root.path(), "out/etc", 0)];
    let refused = volumes_in(root.path()).set_up_sub_paths(&uid(), wanted).await.unwrap_err();
    let expected = format!(
        "failed to prepare subPath for volumeMount \"data\" of container \"app\": {}/out/etc: a symbolic link leads out of the volume",
        volume.display()
    );
    assert_eq!(refused.to_string(), expected);
    let named = SubPathToMount { container: "../../x".to_owned(), ..part(root.path(), "a", 0) };
    assert!(volumes_in(root.path()).set_up_sub_paths(&uid(), vec![named]).await.is_err());
    tear_down(root.path()).await;
}

#[tokio::test]
async fn a_part_for_a_pod_that_is_gone_is_not_mounted() {
    let (root, host) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let wanted = vec![host_part(host.path().to_owned(), "dir")];
    assert!(volumes_in(root.path()).set_up_sub_paths(&uid(), wanted).await.is_err());
    assert!(!paths(root.path()).directory().exists());
}

#[tokio::test]
#[ignore = "the child of the test below"]
async fn child_sets_parts_up_and_tears_them_down() {
    let root = oarsman_crash::directory();
    let wanted = vec![part(&root, "a/b", 0), part(&root, "file", 1)];
    volumes_in(&root).set_up_sub_paths(&uid(), wanted).await.unwrap();
    tear_down(&root).await;
}

#[test]
fn wherever_set_up_and_tear_down_were_killed_the_next_agent_leaves_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let prepare = |root: &Path| {
        runtime.block_on(set_up_volume(root, None));
        fs::write(paths(root).volume(EMPTY_DIR, "data").join("file"), "").unwrap();
    };
    let child = "sub_path::tests::child_sets_parts_up_and_tears_them_down";
    let kills = kill_at_every_change(child, prepare, |root, moment| {
        runtime.block_on(tear_down(root));
        assert_eq!(mounted(root), Vec::<PathBuf>::new(), "{moment}");
        assert!(!paths(root).subpaths().exists(), "{moment}");
    });
    assert!(kills > 10, "killed {kills} times");
}
