//! What emptyDir volumes hold.

use super::*;

#[tokio::test]
async fn what_an_empty_dir_holds_is_counted_with_its_limit() {
    let root = tempfile::tempdir().unwrap();
    let limited = EmptyDirVolumeSource {
        size_limit: Some(Quantity("1Mi".to_owned())),
        ..EmptyDirVolumeSource::default()
    };
    let memory = EmptyDirVolumeSource {
        medium: Some("Memory".to_owned()),
        size_limit: Some(Quantity("8Mi".to_owned())),
    };
    let pod = pod(vec![
        empty_dir("disk", EmptyDirVolumeSource::default()),
        empty_dir("limited", limited),
        empty_dir("memory", memory),
    ]);
    let volumes = volumes_in(root.path());
    let of = async || volumes.empty_dir_usage(&Arc::new(pod.clone())).await.unwrap();
    assert!(of().await.iter().all(|one| one.usage.bytes == 0), "nothing is set up");
    make(&pod, root.path()).await.unwrap();
    for (volume, bytes) in [("disk", 3 << 20), ("limited", 2 << 20), ("memory", 1 << 20)] {
        let path = paths(root.path()).volume("kubernetes.io/empty-dir", volume);
        fs::write(path.join("file"), vec![1; bytes]).unwrap();
        fs::hard_link(path.join("file"), path.join("again")).unwrap();
    }
    let found = of().await;
    let [disk, limited, memory] = &found[..] else { panic!("{found:?}") };
    assert!((3 << 20..4 << 20).contains(&disk.usage.bytes), "{disk:?}");
    assert_eq!((disk.size_limit, disk.usage.inodes, disk.is_on_disk), (None, 2, true));
    assert!(limited.is_over_limit() && limited.size_limit == Some(1 << 20), "{limited:?}");
    assert!((1 << 20..2 << 20).contains(&memory.usage.bytes), "{memory:?}");
    assert!(!memory.is_over_limit() && !memory.is_on_disk, "{memory:?}");
    tear_down(root.path()).await.unwrap();
}

#[tokio::test]
async fn a_mount_is_looked_for_below_links() {
    let root = tempfile::tempdir().unwrap();
    let mount = |is_bidirectional| {
        let (container_path, host_path) = ("/data".to_owned(), root.path().to_owned());
        vec![PropagatedMount { container_path, host_path, is_bidirectional }]
    };
    let volumes = volumes_in(root.path());
    let table = mounts::current().unwrap();
    let on = mounts::mount_of(&table, &root.path().canonicalize().unwrap()).unwrap();
    assert_eq!(volumes.check_propagation(mount(true)).await.is_ok(), on.is_shared());
    let passes = on.is_shared() || on.is_slave();
    assert_eq!(volumes.check_propagation(mount(false)).await.is_ok(), passes);
}
