//! What is mounted where, and what is refused.

use super::*;
use crate::cri_spec::node_context::{NameFiles, NodeSettings};
use crate::node::NodeFacts;

fn mount(edit: impl FnOnce(&mut VolumeMount)) -> VolumeMount {
    let mut mount = VolumeMount {
        name: "data".to_owned(),
        mount_path: "/data".to_owned(),
        ..VolumeMount::default()
    };
    edit(&mut mount);
    mount
}

fn container(mounts: Vec<VolumeMount>) -> Container {
    Container {
        name: "app".to_owned(),
        volume_mounts: Some(mounts),
        termination_message_path: Some("/dev/termination-log".to_owned()),
        ..Container::default()
    }
}

fn volume(read_only: bool) -> VolumePath {
    VolumePath { path: "/r/data".into(), read_only, relabel: true }
}

fn host_paths(volume: VolumePath) -> ContainerHostPaths {
    let volumes = BTreeMap::from([("data".to_owned(), volume)]);
    ContainerHostPaths { volumes, ..ContainerHostPaths::default() }
}

fn made(
    spec: &Container,
    host_paths: &ContainerHostPaths,
    edit: impl FnOnce(&mut NodeFacts, &mut NodeSettings),
) -> Result<Vec<Mount>, ConfigError> {
    let (mut facts, mut settings) = (NodeFacts::default(), NodeSettings::of_memory(1 << 30));
    edit(&mut facts, &mut settings);
    let node = NodeContext {
        root: "/r",
        pod_logs: Path::new("/var/log/pods"),
        facts: &facts,
        settings: &settings,
        name_files: &NameFiles::default(),
    };
    mounts(spec, host_paths, &node)
}

fn one(mount: VolumeMount, volume: VolumePath, recursive: bool) -> Result<Mount, ConfigError> {
    let spec = container(vec![mount]);
    let edit = |facts: &mut NodeFacts, _: &mut NodeSettings| facts.recursive_read_only = recursive;
    let mounts = made(&spec, &host_paths(volume), edit)?;
    assert_eq!(mounts.len(), 1);
    Ok(mounts[0].clone())
}

#[test]
fn a_volume_is_mounted_where_the_container_wants_it() {
    let plain = Mount {
        container_path: "/data".to_owned(),
        host_path: "/r/data".to_owned(),
        ..Mount::default()
    };
    let text = |text: &str| Some(text.to_owned());
    use MountPropagation::{PropagationBidirectional, PropagationHostToContainer};
    type Edit = fn(&mut VolumeMount);
    let rows: [(Edit, bool, Mount); 7] = [
        (|_| (), false, plain.clone()),
        (|m| m.mount_path = "data".to_owned(), false, plain.clone()),
        (|m| m.mount_propagation = Some("None".to_owned()), false, plain.clone()),
        (
            |m| m.mount_propagation = Some("HostToContainer".to_owned()),
            false,
            Mount { propagation: PropagationHostToContainer.into(), ..plain.clone() },
        ),
        (
            |m| m.mount_propagation = Some("Bidirectional".to_owned()),
            false,
            Mount { propagation: PropagationBidirectional.into(), ..plain.clone() },
        ),
        (|m| m.read_only = Some(true), false, Mount { readonly: true, ..plain.clone() }),
        (|_| (), true, Mount { readonly: true, ..plain }),
    ];
    for (edit, read_only, expected) in rows {
        assert_eq!(one(mount(edit), volume(read_only), false), Ok(expected));
    }
    let wrong = mount(|m| m.mount_propagation = text("Sideways"));
    let error = one(wrong, volume(false), false).unwrap_err();
    assert_eq!(error.to_string(), "mountPropagation cannot be \"Sideways\"");
}

#[test]
fn read_only_all_the_way_down_needs_a_runtime_that_can_and_a_mount_that_is() {
    let row = |mode: &str, read_only: bool, propagation: &str| {
        mount(|mount| {
            mount.recursive_read_only = Some(mode.to_owned());
            mount.read_only = Some(read_only);
            mount.mount_propagation = Some(propagation.to_owned());
        })
    };
    let rows = [
        (row("Disabled", false, "Bidirectional"), false, Ok(false)),
        (row("IfPossible", true, "None"), true, Ok(true)),
        (row("IfPossible", true, "None"), false, Ok(false)),
        (row("Enabled", true, "None"), true, Ok(true)),
        (row("Enabled", true, "None"), false, Err("it is not supported by the runtime")),
        (row("Enabled", false, "None"), true, Err("it is not read-only")),
        (row("IfPossible", false, "None"), true, Err("it is not read-only")),
        (
            row("Enabled", true, "HostToContainer"),
            true,
            Err("it is not compatible with propagation \"HostToContainer\""),
        ),
        (row("Perhaps", true, "None"), true, Err("recursiveReadOnly cannot be \"Perhaps\"")),
    ];
    for (mount, supported, expected) in rows {
        let made = one(mount, volume(false), supported).map(|mount| mount.recursive_read_only);
        match (made, expected) {
            (Ok(made), Ok(expected)) => assert_eq!(made, expected),
            (Err(error), Err(end)) => assert!(error.to_string().ends_with(end), "{error}"),
            (made, expected) => panic!("{made:?} {expected:?}"),
        }
    }
}

#[test]
fn what_cannot_be_mounted_is_named() {
    let rows = [
        (
            mount(|mount| mount.name = "other".to_owned()),
            "cannot find volume \"other\" to mount into container \"app\"",
        ),
        (
            mount(|mount| mount.sub_path = Some("a".to_owned())),
            "cannot find the subPath of volume \"data\" to mount into container \"app\"",
        ),
        (
            mount(|mount| mount.sub_path_expr = Some("$(A)".to_owned())),
            "cannot find the subPath of volume \"data\" to mount into container \"app\"",
        ),
    ];
    for (mount, expected) in rows {
        assert_eq!(one(mount, volume(false), false).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_part_of_a_volume_is_mounted_from_where_it_was_set_up() {
    let part = mount(|mount| {
        mount.sub_path = Some("a".to_owned());
        mount.read_only = Some(true);
    });
    let spec = container(vec![mount(|_| ()), part]);
    let sub_paths = BTreeMap::from([(1, "/r/volume-subpaths/data/app/1".into())]);
    let host_paths = ContainerHostPaths { sub_paths, ..host_paths(volume(false)) };
    let mounts = made(&spec, &host_paths, |_, _| ()).unwrap().into_iter();
    let paths: Vec<_> = mounts.map(|mount| (mount.host_path, mount.readonly)).collect();
    let expected = [("/r/data", false), ("/r/volume-subpaths/data/app/1", true)];
    assert_eq!(paths, expected.map(|(path, read_only)| (path.to_owned(), read_only)));
}

#[test]
fn an_image_is_mounted_read_only_by_the_runtime() {
    let part = mount(|mount| mount.sub_path = Some("weights".to_owned()));
    let spec = container(vec![mount(|_| ()), part]);
    let image = ImageVolume { id: "sha256:1".to_owned(), reference: "model:1".to_owned() };
    let host_paths = ContainerHostPaths {
        images: BTreeMap::from([("data".to_owned(), image)]),
        sub_paths: BTreeMap::from([(1, "weights".into())]),
        ..ContainerHostPaths::default()
    };
    let mounts = made(&spec, &host_paths, |_, _| ()).unwrap();
    for (mount, sub_path) in mounts.iter().zip(["", "weights"]) {
        let image = mount.image.as_ref().unwrap();
        assert_eq!((&*image.image, &*image.user_specified_image), ("sha256:1", "model:1"));
        assert_eq!((&*mount.host_path, &*mount.image_sub_path), ("", sub_path));
        assert!(mount.readonly && mount.container_path == "/data");
    }
}

#[test]
fn the_hosts_file_and_the_termination_message_are_mounted_after_the_volumes() {
    let host_paths = ContainerHostPaths {
        hosts: Some("/r/etc-hosts".into()),
        termination_log: Some("/r/containers/app/0a".into()),
        ..host_paths(volume(false))
    };
    let paths = |spec: &Container| -> Vec<(String, String, bool)> {
        let mounts = made(spec, &host_paths, |_, _| ()).unwrap().into_iter();
        mounts.map(|mount| (mount.container_path, mount.host_path, mount.readonly)).collect()
    };
    let row = |to: &str, from: &str| (to.to_owned(), from.to_owned(), false);
    let message = row("/dev/termination-log", "/r/containers/app/0a");
    let data = row("/data", "/r/data");
    assert_eq!(
        paths(&container(vec![mount(|_| ())])),
        [data.clone(), row("/etc/hosts", "/r/etc-hosts"), message.clone()]
    );
    let own = mount(|mount| mount.mount_path = "/etc/hosts".to_owned());
    assert_eq!(paths(&container(vec![own])), [row("/etc/hosts", "/r/data"), message]);
    let mut silent = container(vec![mount(|_| ())]);
    silent.termination_message_path = None;
    assert_eq!(paths(&silent), [data, row("/etc/hosts", "/r/etc-hosts")]);
}

#[test]
fn what_is_ours_gets_the_pods_label_where_labels_count() {
    let host_paths =
        ContainerHostPaths { hosts: Some("/r/etc-hosts".into()), ..host_paths(volume(false)) };
    let spec = container(vec![mount(|_| ())]);
    for selinux in [false, true] {
        let mounts = made(&spec, &host_paths, |_, settings| settings.selinux = selinux).unwrap();
        assert_eq!(mounts.len(), 2);
        assert!(mounts.iter().all(|mount| mount.selinux_relabel == selinux));
    }
}

#[test]
fn a_block_volume_is_a_device() {
    let wanted = VolumeDevice { name: "raw".to_owned(), device_path: "/dev/xvda".to_owned() };
    let spec = Container { volume_devices: Some(vec![wanted]), ..container(Vec::new()) };
    let error = devices(&spec, &ContainerHostPaths::default()).unwrap_err().to_string();
    assert_eq!(error, "cannot find volume \"raw\" to pass into container \"app\"");
    for (read_only, permissions) in [(false, "mrw"), (true, "r")] {
        let link = VolumePath { path: "/r/link".into(), read_only, relabel: false };
        let raw = BTreeMap::from([("raw".to_owned(), link)]);
        let made =
            devices(&spec, &ContainerHostPaths { devices: raw, ..ContainerHostPaths::default() });
        let device = Device {
            container_path: "/dev/xvda".to_owned(),
            host_path: "/r/link".to_owned(),
            permissions: permissions.to_owned(),
        };
        assert_eq!(made, Ok(vec![device]));
    }
}

#[test]
fn mounts_through_which_others_pass_are_found() {
    let mount = |path: &str, host: &str, propagation: MountPropagation| Mount {
        container_path: path.to_owned(),
        host_path: host.to_owned(),
        propagation: propagation.into(),
        ..Mount::default()
    };
    let mounts = vec![
        mount("/private", "/h/a", MountPropagation::PropagationPrivate),
        mount("/in", "/h/b", MountPropagation::PropagationHostToContainer),
        mount("/both", "/h/c", MountPropagation::PropagationBidirectional),
        mount("/image", "", MountPropagation::PropagationBidirectional),
    ];
    let found = propagated_mounts(&ContainerConfig { mounts, ..ContainerConfig::default() });
    let found: Vec<_> =
        found.iter().map(|one| (one.container_path.as_str(), one.is_bidirectional)).collect();
    assert_eq!(found, [("/in", false), ("/both", true)]);
}
