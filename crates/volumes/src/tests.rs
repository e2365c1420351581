//! Volumes on real directories and real mounts.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EmptyDirVolumeSource, HostPathVolumeSource,
    ISCSIVolumeSource, PodSecurityContext, PodSpec, SecretVolumeSource, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use oarsman_core::cri_spec::{Payload, PayloadFile};
use oarsman_core::ids::PodUid;
use oarsman_core::persistent_volume::ClaimedVolumes;
use oarsman_crash::HungMount;
use tokio::time::timeout;

use k8s_openapi::api::core::v1::Volume;
use oarsman_clock::SystemClock;
use oarsman_core::cri_spec::{Payloads, PodPaths};
use oarsman_core::volume_manager::{ActualStateOfWorld, DesiredStateOfWorld, reconcile};
use oarsman_host::mounts;

use super::*;

mod persistent;
mod usage;

fn pod(volumes: Vec<Volume>) -> Pod {
    let mount = |volume: &Volume| VolumeMount { name: volume.name.clone(), ..Default::default() };
    let main = Container {
        volume_mounts: Some(volumes.iter().map(mount).collect()),
        ..Container::default()
    };
    let spec = PodSpec { containers: vec![main], volumes: Some(volumes), ..PodSpec::default() };
    let mut pod = Pod { spec: Some(spec), ..Pod::default() };
    pod.metadata.uid = Some("u".to_owned());
    pod
}

fn empty_dir(name: &str, source: EmptyDirVolumeSource) -> Volume {
    Volume { name: name.to_owned(), empty_dir: Some(source), ..Volume::default() }
}

fn host_path(path: &Path, type_: &str) -> Volume {
    let path = path.display().to_string();
    let source = HostPathVolumeSource { path, type_: Some(type_.to_owned()) };
    Volume { name: "host".to_owned(), host_path: Some(source), ..Volume::default() }
}

fn paths(root: &Path) -> PodPaths {
    PodPaths::new(root, &PodUid::from("u"))
}

/// Volumes of this machine below that directory.
fn volumes_in(root: &Path) -> HostVolumes {
    HostVolumes::new(root.to_owned(), Arc::new(SystemClock::start()))
}

async fn make(pod: &Pod, root: &Path) -> Result<(), VolumeError> {
    set_up(pod, root, Payloads::new()).await
}

async fn set_up(pod: &Pod, root: &Path, payloads: Payloads) -> Result<(), VolumeError> {
    let desired = DesiredStateOfWorld::of(pod, payloads, &ClaimedVolumes::new());
    let todo = reconcile(&desired, &ActualStateOfWorld::default());
    volumes_in(root).set_up(&Arc::new(pod.clone()), todo.set_up).await
}

/// Tears down whatever is found.
async fn tear_down(root: &Path) -> Result<(), VolumeError> {
    let (volumes, uid) = (volumes_in(root), PodUid::from("u"));
    volumes.tear_down(&uid, volumes.mounted(&uid).await?).await
}

fn is_mounted(path: &Path) -> bool {
    mounts::current().unwrap().iter().any(|mount| mount.point == path)
}

#[tokio::test]
async fn an_empty_dir_is_writable_by_all_and_keeps_its_content_until_torn_down() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(root.path());
    let mut pod = pod(vec![empty_dir("cache", EmptyDirVolumeSource::default())]);
    let context = PodSecurityContext { fs_group: Some(1234), ..PodSecurityContext::default() };
    pod.spec.as_mut().unwrap().security_context = Some(context);
    make(&pod, root.path()).await.unwrap();
    let directory = paths.volume("kubernetes.io/empty-dir", "cache");
    let there = fs::metadata(&directory).unwrap();
    assert_eq!((there.permissions().mode() & 0o7777, there.gid()), (0o2777, 1234));
    fs::write(directory.join("kept"), "").unwrap();
    make(&pod, root.path()).await.unwrap();
    assert!(directory.join("kept").exists());
    tear_down(root.path()).await.unwrap();
    tear_down(root.path()).await.unwrap();
    assert!(!directory.exists());
}

#[tokio::test]
async fn an_empty_dir_in_memory_is_mounted_once_with_its_size_and_unmounted() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(root.path());
    let source = EmptyDirVolumeSource {
        medium: Some("Memory".to_owned()),
        size_limit: Some(Quantity("1Mi".to_owned())),
    };
    let pod = pod(vec![empty_dir("fast", source)]);
    for _ in 0..2 {
        make(&pod, root.path()).await.unwrap();
    }
    let directory = paths.volume("kubernetes.io/empty-dir", "fast");
    let all = mounts::current().unwrap();
    let mounted: Vec<_> = all.iter().filter(|mount| mount.point == directory).collect();
    assert_eq!(mounted.len(), 1);
    assert!(mounted[0].super_options.contains("size=1024k"), "{:?}", mounted[0]);
    tear_down(root.path()).await.unwrap();
    assert!(!is_mounted(&directory) && !directory.exists());
}

#[tokio::test]
async fn one_in_memory_has_the_nodes_size_and_is_never_swapped_where_the_kernel_can_tell() {
    let root = tempfile::tempdir().unwrap();
    let source = EmptyDirVolumeSource { medium: Some("Memory".to_owned()), size_limit: None };
    let pod = Arc::new(pod(vec![empty_dir("fast", source)]));
    let clock = Arc::new(SystemClock::start());
    let volumes = HostVolumes::on_node(root.path().to_owned(), clock, Some(8 << 20));
    let desired = DesiredStateOfWorld::of(&pod, Payloads::new(), &ClaimedVolumes::new());
    let todo = reconcile(&desired, &ActualStateOfWorld::default());
    volumes.set_up(&pod, todo.set_up).await.unwrap();
    let directory = paths(root.path()).volume("kubernetes.io/empty-dir", "fast");
    let all = mounts::current().unwrap();
    let mounted = all.iter().find(|mount| mount.point == directory).unwrap();
    assert!(mounted.super_options.contains("size=8192k"), "{mounted:?}");
    // The kernel of the tests is newer than 6.4; in a user namespace it refuses the option.
    let in_user_namespace =
        !fs::read_to_string("/proc/self/uid_map").unwrap().contains("4294967295");
    assert!(in_user_namespace || mounted.super_options.contains("noswap"), "{mounted:?}");
    tear_down(root.path()).await.unwrap();
}

#[tokio::test]
async fn huge_pages_of_a_size_that_the_node_lacks_are_refused_with_those_it_has() {
    let root = tempfile::tempdir().unwrap();
    let medium = Some("HugePages-64Ki".to_owned());
    let source = EmptyDirVolumeSource { medium, size_limit: None };
    let refused = make(&pod(vec![empty_dir("v", source)]), root.path()).await.unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused.starts_with("volume \"v\": this node has no huge pages of 64Ki, but "),
        "{refused}"
    );
}

#[tokio::test]
async fn behind_a_link_one_in_memory_is_mounted_once_too_and_unmounted() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let source = EmptyDirVolumeSource {
        medium: Some("Memory".to_owned()),
        ..EmptyDirVolumeSource::default()
    };
    let pod = pod(vec![empty_dir("fast", source)]);
    for _ in 0..100 {
        make(&pod, &link).await.unwrap();
    }
    let volume = paths(&real).volume("kubernetes.io/empty-dir", "fast");
    let count = || mounts::current().unwrap().iter().filter(|it| it.point == volume).count();
    assert_eq!(count(), 1);
    // What an older version had stacked, and what a container left mounted in it.
    let inner = volume.join("inner");
    fs::create_dir(&inner).unwrap();
    for path in [&volume, &inner] {
        fs::create_dir_all(path).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", path, "tmpfs", flags, c"").unwrap();
    }
    tear_down(&link).await.unwrap();
    assert!(count() == 0 && !volume.exists());
}

#[tokio::test]
async fn a_host_path_is_checked_against_its_type_or_created() {
    let root = tempfile::tempdir().unwrap();
    let (file, missing) = (root.path().join("file"), root.path().join("missing"));
    fs::write(&file, "").unwrap();
    let made = root.path().join("made");
    let rows = [
        (file.as_path(), "", None),
        (&missing, "", None),
        (&file, "File", None),
        (&file, "Directory", Some("is not a directory")),
        (&missing, "Socket", Some("does not exist, and should be a socket")),
        (root.path(), "Directory", None),
        (root.path(), "FileOrCreate", Some("is not a file")),
        (&made, "DirectoryOrCreate", None),
        (&made, "Directory", None),
        (Path::new("/dev/null"), "CharDevice", None),
        (Path::new("/dev/null"), "BlockDevice", Some("is not a block device")),
    ];
    for (path, type_, refused) in rows {
        let result = make(&pod(vec![host_path(path, type_)]), root.path()).await;
        let told = result.err().map(|error| error.to_string());
        match (&told, refused) {
            (None, None) => {}
            (Some(told), Some(reason)) => assert!(told.contains(reason), "{told}"),
            _ => panic!("{} as {type_:?}: {told:?}", path.display()),
        }
    }
    assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o755);
}

#[tokio::test]
async fn only_mounted_volumes_are_set_up_and_unsupported_ones_are_named() {
    let root = tempfile::tempdir().unwrap();
    let iscsi = ISCSIVolumeSource::default();
    let iscsi = Volume { name: "far".to_owned(), iscsi: Some(iscsi), ..Volume::default() };
    let mut pod = pod(vec![iscsi]);
    let refused = make(&pod, root.path()).await.unwrap_err().to_string();
    assert!(refused.contains("\"far\"") && refused.contains("iscsi"), "{refused}");
    pod.spec.as_mut().unwrap().containers[0].volume_mounts = None;
    make(&pod, root.path()).await.unwrap();
}

/// A secret volume `login` with that file.
fn secret(text: &str) -> (Pod, Payloads) {
    let source = SecretVolumeSource::default();
    let volume = Volume { name: "login".to_owned(), secret: Some(source), ..Volume::default() };
    let file = PayloadFile { bytes: text.as_bytes().into(), mode: 0o600, owner: None, keep: false };
    let files = Payload::from([("key".to_owned(), file)]);
    (pod(vec![volume]), Payloads::from([("login".to_owned(), files)]))
}

#[tokio::test]
async fn secrets_are_in_memory_and_removed_with_the_pod() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(root.path());
    let (mut pod, files) = secret("hunter2");
    let context = PodSecurityContext { fs_group: Some(1234), ..PodSecurityContext::default() };
    pod.spec.as_mut().unwrap().security_context = Some(context);
    set_up(&pod, root.path(), files.clone()).await.unwrap();
    let directory = paths.volume("kubernetes.io/secret", "login");
    assert!(is_mounted(&directory));
    let key = fs::metadata(directory.join("key")).unwrap();
    assert_eq!((key.permissions().mode() & 0o7777, key.gid()), (0o640, 1234), "its group reads");
    let (_, newer) = secret("hunter3");
    set_up(&pod, root.path(), newer.clone()).await.unwrap();
    assert_eq!(fs::read_to_string(directory.join("key")).unwrap(), "hunter3");
    set_up(&pod, root.path(), Payloads::new()).await.unwrap();
    assert_eq!(
        fs::read_to_string(directory.join("key")).unwrap(),
        "hunter3",
        "the file is written again"
    );
    tear_down(root.path()).await.unwrap();
    assert!(!is_mounted(&directory) && !directory.exists());
}

#[tokio::test]
async fn a_config_map_lies_on_disk_and_no_file_leaves_its_volume() {
    let root = tempfile::tempdir().unwrap();
    let paths = paths(root.path());
    let source = ConfigMapVolumeSource::default();
    let volume = Volume { name: "login".to_owned(), config_map: Some(source), ..Volume::default() };
    let pod = pod(vec![volume]);
    let (_, files) = secret("text");
    set_up(&pod, root.path(), files.clone()).await.unwrap();
    let directory = paths.volume("kubernetes.io/configmap", "login");
    assert!(!is_mounted(&directory) && directory.join("key").exists());
    for path in ["../x", "..x", "a/../x", "/x", "a//b", ""] {
        let file = files["login"]["key"].clone();
        let files = Payload::from([(path.to_owned(), file)]);
        let files = Payloads::from([("login".to_owned(), files)]);
        let refused = set_up(&pod, root.path(), files.clone()).await.unwrap_err();
        assert!(matches!(refused, VolumeError::Path { .. }), "{path}: {refused}");
    }
}

#[tokio::test]
async fn a_stray_file_beside_the_volumes_does_not_keep_them_from_being_torn_down() {
    let directory = tempfile::tempdir().unwrap();
    let pod = pod(vec![empty_dir("scratch", EmptyDirVolumeSource::default())]);
    make(&pod, directory.path()).await.unwrap();
    let volumes = paths(directory.path()).volumes();
    fs::write(volumes.join("stray"), "").unwrap();
    tear_down(directory.path()).await.unwrap();
    let scratch = paths(directory.path()).volume("kubernetes.io/empty-dir", "scratch");
    assert!(!scratch.exists(), "{scratch:?}");
}

#[tokio::test]
async fn a_file_that_would_be_a_directory_too_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (pod, files) = secret("text");
    let file = files["login"]["key"].clone();
    let named = |names: &[&str]| -> Payloads {
        let files = names.iter().map(|name| ((*name).to_owned(), file.clone())).collect();
        Payloads::from([("login".to_owned(), files)])
    };
    for names in [&["a", "a/b"][..], &["a", "a-b", "a/b/c"], &["x/y", "x/y/z", "x/y-z"]] {
        let refused = set_up(&pod, root.path(), named(names)).await.unwrap_err().to_string();
        assert!(refused.contains("\"login\"") && refused.contains(names[0]), "{refused}");
        assert!(refused.contains("directory"), "{refused}");
    }
    set_up(&pod, root.path(), named(&["a", "a-b/c", "ab/c"])).await.unwrap();
    tear_down(root.path()).await.unwrap();
}

#[tokio::test]
async fn a_medium_is_one_that_is_known_and_never_an_option_of_a_mount() {
    let root = tempfile::tempdir().unwrap();
    for medium in [
        "HugePages-2M,min_size=100%",
        "HugePages-2Mi,uid=0",
        "HugePages-3Mi",
        "HugePages-",
        "Flash",
        "memory",
    ] {
        let source = EmptyDirVolumeSource { medium: Some(medium.to_owned()), size_limit: None };
        let refused = make(&pod(vec![empty_dir("v", source)]), root.path()).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("\"v\"") && refused.contains(medium), "{refused}");
    }
    let directory = paths(root.path()).volume("kubernetes.io/empty-dir", "v");
    assert!(!is_mounted(&directory));
}

/// Row H9 of docs/security.md.
#[tokio::test]
async fn a_mount_in_an_empty_dir_whose_server_is_gone_is_unmounted() {
    let root = tempfile::tempdir().unwrap();
    let pod = pod(vec![empty_dir("cache", EmptyDirVolumeSource::default())]);
    make(&pod, root.path()).await.unwrap();
    let volume = paths(root.path()).volume("kubernetes.io/empty-dir", "cache");
    let point = volume.join("data");
    fs::create_dir(&point).unwrap();
    let Some(mut hung) = HungMount::at(&point) else { return };
    hung.end_server();
    assert!(fs::metadata(&point).is_err());
    tear_down(root.path()).await.unwrap();
    assert!(!volume.exists());
}

/// Row H22 of docs/security.md.
#[tokio::test]
async fn an_empty_dir_that_was_begun_before_a_crash_is_writable_by_all() {
    let root = tempfile::tempdir().unwrap();
    let volume = paths(root.path()).volume("kubernetes.io/empty-dir", "cache");
    fs::create_dir_all(volume.with_file_name(".new-cache")).unwrap();
    let pod = pod(vec![empty_dir("cache", EmptyDirVolumeSource::default())]);
    make(&pod, root.path()).await.unwrap();
    assert_eq!(fs::metadata(&volume).unwrap().permissions().mode() & 0o777, 0o777);
    assert!(!volume.with_file_name(".new-cache").exists());
    fs::set_permissions(&volume, fs::Permissions::from_mode(0o700)).unwrap();
    make(&pod, root.path()).await.unwrap();
    let mode = fs::metadata(&volume).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "a container has set it");
}

/// Part 5 of issue 17: more pods than there are threads for such volumes.
#[tokio::test]
async fn pods_whose_host_paths_hang_keep_no_other_pod_from_its_volumes() {
    let root = tempfile::tempdir().unwrap();
    let point = root.path().join("mount");
    fs::create_dir(&point).unwrap();
    let Some(mount) = HungMount::at(&point) else { return };
    let volumes = volumes_in(root.path());
    let make = async |pod: Pod| {
        let desired = DesiredStateOfWorld::of(&pod, Payloads::new(), &ClaimedVolumes::new());
        let todo = reconcile(&desired, &ActualStateOfWorld::default());
        volumes.set_up(&Arc::new(pod), todo.set_up).await
    };
    let with_uid = |uid: String, volume: Volume| {
        let mut pod = pod(vec![volume]);
        pod.metadata.uid = Some(uid);
        pod
    };
    let path = point.join("data").display().to_string();
    for number in 0..20 {
        let source = HostPathVolumeSource { path: path.clone(), type_: Some("Directory".into()) };
        let volume = Volume { name: "v".into(), host_path: Some(source), ..Volume::default() };
        let made = make(with_uid(format!("hung-{number}"), volume));
        assert!(timeout(Duration::from_millis(20), made).await.is_err(), "it hangs");
    }
    let other = with_uid("u".to_owned(), empty_dir("v", EmptyDirVolumeSource::default()));
    timeout(Duration::from_secs(30), make(other)).await.unwrap().unwrap();
    drop(mount);
}
