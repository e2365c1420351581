//! The mounts of a container: those that every one has, its pod's files, and those that its configuration asks for.

use std::path::{Path, PathBuf};

use oarsman_cri_types::v1::{Mount as CriMount, MountPropagation};
use oci_spec::OciSpecError;
use oci_spec::runtime::{Mount, MountBuilder};

use super::{SpecError, user_namespace};

/// Files of the pod and of the node that every container sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodFileMounts {
    /// Sources of files by their paths in a container.
    pub(crate) files: Vec<(&'static str, PathBuf)>,
    /// The shared memory of pod or node; none for a container of its own IPC namespace.
    pub(crate) shm: Option<PathBuf>,
}

/// What decides about the mounts that every container has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MountTraits {
    pub(crate) privileged: bool,
    pub(crate) readonly_root: bool,
    /// Whether the node's sysfs is bound: the kernel mounts no sysfs anew for a user namespace that does not own the network.
    pub(crate) binds_sysfs: bool,
}

/// All mounts in the order in which they are made.
pub(crate) fn mounts(
    asked: &[CriMount],
    pod: &PodFileMounts,
    traits: MountTraits,
) -> Result<Vec<Mount>, SpecError> {
    let is_asked = |path: &Path| asked.iter().any(|mount| Path::new(&mount.container_path) == path);
    let mut all = standard(traits)?;
    for (path, source) in &pod.files {
        let write = if traits.readonly_root { "ro" } else { "rw" };
        all.push(mount(path, "bind", source, &["rbind", "rprivate", write])?);
    }
    all.push(match &pod.shm {
        Some(shm) => mount("/dev/shm", "bind", shm, &["rbind", "rprivate", "rw"])?,
        None => mount(
            "/dev/shm",
            "tmpfs",
            Path::new("shm"),
            &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
        )?,
    });
    let has_own_dev = is_asked(Path::new("/dev"));
    all.retain(|mount| {
        let is_covered = has_own_dev && mount.destination().starts_with("/dev");
        !is_covered && !is_asked(mount.destination())
    });
    let mut own: Vec<&CriMount> = asked.iter().collect();
    // What is mounted below another mount comes after it.
    own.sort_by_key(|mount| Path::new(&mount.container_path).components().count());
    for asked in own {
        all.push(bind(asked)?);
    }
    Ok(all)
}

fn standard(traits: MountTraits) -> Result<Vec<Mount>, OciSpecError> {
    let write = if traits.privileged { "rw" } else { "ro" };
    let sys = match traits.binds_sysfs {
        false => mount("/sys", "sysfs", Path::new("sysfs"), &["nosuid", "noexec", "nodev", write])?,
        true => {
            // The node's own control groups come with it, and cover those of the container.
            let all = if traits.privileged { "rw" } else { "rro" };
            let options = ["rbind", "rprivate", "nosuid", "noexec", "nodev", write, all];
            mount("/sys", "bind", Path::new("/sys"), &options)?
        }
    };
    Ok(vec![
        mount("/proc", "proc", Path::new("proc"), &["nosuid", "noexec", "nodev"])?,
        mount(
            "/dev",
            "tmpfs",
            Path::new("tmpfs"),
            &["nosuid", "strictatime", "mode=755", "size=65536k"],
        )?,
        mount(
            "/dev/pts",
            "devpts",
            Path::new("devpts"),
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
        )?,
        mount("/dev/mqueue", "mqueue", Path::new("mqueue"), &["nosuid", "noexec", "nodev"])?,
        sys,
        mount(
            "/sys/fs/cgroup",
            "cgroup",
            Path::new("cgroup"),
            &["nosuid", "noexec", "nodev", "relatime", write],
        )?,
    ])
}

fn mount(
    destination: impl AsRef<Path>,
    kind: &str,
    source: &Path,
    options: &[&str],
) -> Result<Mount, OciSpecError> {
    let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    let mount = MountBuilder::default().destination(destination.as_ref()).typ(kind);
    mount.source(source).options(options).build()
}

fn bind(asked: &CriMount) -> Result<Mount, SpecError> {
    let refused = |why| SpecError::Mount { path: asked.container_path.clone(), why };
    if !Path::new(&asked.container_path).is_absolute() {
        return Err(refused("its path in the container is not absolute"));
    }
    if asked.host_path.is_empty() {
        return Err(refused("it has no path on the node"));
    }
    let propagation = match asked.propagation() {
        MountPropagation::PropagationPrivate => "rprivate",
        MountPropagation::PropagationHostToContainer => "rslave",
        MountPropagation::PropagationBidirectional => "rshared",
    };
    let mut options = vec!["rbind", propagation];
    match (asked.recursive_read_only, asked.readonly) {
        (true, false) => return Err(refused("it is recursively read-only, but not read-only")),
        (true, true) if propagation != "rprivate" => {
            return Err(refused("a recursively read-only mount cannot propagate"));
        }
        (true, true) => options.extend(["ro", "rro"]),
        (false, true) => options.push("ro"),
        (false, false) => options.push("rw"),
    }
    let mut bound = mount(&asked.container_path, "bind", Path::new(&asked.host_path), &options)?;
    if !asked.uid_mappings.is_empty() || !asked.gid_mappings.is_empty() {
        bound.set_uid_mappings(Some(user_namespace::built(&asked.uid_mappings)?));
        bound.set_gid_mappings(Some(user_namespace::built(&asked.gid_mappings)?));
    }
    Ok(bound)
}

/// The propagation of the root that the mounts need; none for the usual one.
pub(crate) fn root_propagation(asked: &[CriMount]) -> Option<&'static str> {
    let has = |wanted| asked.iter().any(|mount| mount.propagation() == wanted);
    if has(MountPropagation::PropagationBidirectional) {
        Some("rshared")
    } else if has(MountPropagation::PropagationHostToContainer) {
        Some("rslave")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(path: &str) -> CriMount {
        CriMount {
            container_path: path.to_owned(),
            host_path: "/srv".to_owned(),
            ..CriMount::default()
        }
    }

    fn options(mount: &CriMount) -> Option<String> {
        bind(mount).ok().map(|found| found.options().as_ref().unwrap().join(","))
    }

    #[test]
    fn a_mount_is_bound_with_its_options() {
        use MountPropagation::{PropagationBidirectional, PropagationHostToContainer};
        let with = |readonly, recursive_read_only, propagation: MountPropagation| CriMount {
            readonly,
            recursive_read_only,
            propagation: propagation.into(),
            ..asked("/data")
        };
        let private = MountPropagation::PropagationPrivate;
        let rows = [
            (with(false, false, private), Some("rbind,rprivate,rw")),
            (with(true, false, private), Some("rbind,rprivate,ro")),
            (with(true, true, private), Some("rbind,rprivate,ro,rro")),
            (with(false, true, private), None),
            (with(true, true, PropagationHostToContainer), None),
            (with(false, false, PropagationHostToContainer), Some("rbind,rslave,rw")),
            (with(false, false, PropagationBidirectional), Some("rbind,rshared,rw")),
            (asked("data"), None),
            (CriMount { host_path: String::new(), ..asked("/data") }, None),
        ];
        for (mount, wanted) in rows {
            assert_eq!(options(&mount).as_deref(), wanted, "{mount:?}");
        }
        let all = [with(false, false, PropagationHostToContainer)];
        assert_eq!((root_propagation(&[]), root_propagation(&all)), (None, Some("rslave")));
    }

    #[test]
    fn sysfs_is_the_containers_own_and_one_of_the_node_is_read_only_with_all_below_it() {
        let sys = |privileged, binds_sysfs| {
            let traits = MountTraits { privileged, binds_sysfs, readonly_root: false };
            let found = mounts(&[], &PodFileMounts::default(), traits).unwrap();
            let sys = found.iter().find(|mount| mount.destination() == Path::new("/sys")).unwrap();
            (sys.typ().clone().unwrap(), sys.options().clone().unwrap().join(","))
        };
        let rows = [
            (false, false, "sysfs", "nosuid,noexec,nodev,ro"),
            (true, false, "sysfs", "nosuid,noexec,nodev,rw"),
            (false, true, "bind", "rbind,rprivate,nosuid,noexec,nodev,ro,rro"),
            (true, true, "bind", "rbind,rprivate,nosuid,noexec,nodev,rw,rw"),
        ];
        for (privileged, binds, kind, options) in rows {
            let wanted = (kind.to_owned(), options.to_owned());
            assert_eq!(sys(privileged, binds), wanted, "{privileged} {binds}");
        }
    }

    #[test]
    fn a_mount_replaces_a_standard_one_and_parents_come_first() {
        let pod = PodFileMounts {
            files: vec![("/etc/hosts", "/pod/hosts".into())],
            shm: Some("/pod/shm".into()),
        };
        let all = [asked("/a/b"), asked("/etc/hosts"), asked("/a"), asked("/dev/shm")];
        let found = mounts(&all, &pod, MountTraits::default()).unwrap();
        let paths: Vec<_> =
            found.iter().map(|mount| mount.destination().to_str().unwrap()).collect();
        let wanted = ["/proc", "/dev", "/dev/pts", "/dev/mqueue", "/sys", "/sys/fs/cgroup"];
        assert_eq!(paths[..6], wanted);
        assert_eq!(paths[6..], ["/a", "/a/b", "/etc/hosts", "/dev/shm"]);
        assert!(found.iter().all(|mount| mount.source().as_deref() != Some(Path::new("/pod/shm"))));
        // A directory of the node in the place of all devices is not covered in part.
        let found = mounts(&[asked("/dev")], &pod, MountTraits::default()).unwrap();
        let below = found.iter().filter(|mount| mount.destination().starts_with("/dev")).count();
        assert_eq!(below, 1);
    }
}
