//! Where on the machine a pod's things lie: the layout of the Go kubelet, so that either can take over from the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Pod, Volume};

use super::mounts::VolumePath;
use crate::ids::{ContainerId, FullName, PodUid};
use crate::pod::PodExt;

/// A file's name has at most 255 bytes, and ours end in `.log`.
const LINK_LIMIT: usize = 251;

/// A pod's log directory.
pub fn log_directory(pod_logs: &Path, pod: &Pod) -> PathBuf {
    let name = pod.full_name();
    pod_logs.join(format!("{}_{}_{}", name.namespace, name.name, pod.uid()))
}

/// A container's log file, below its pod's log directory.
pub fn log_path(container: &str, restart_count: u32) -> String {
    format!("{container}/{restart_count}.log")
}

/// The name under which a container's log is found by the container's id, cut to what a file may be called.
pub fn log_link(pod: &FullName, container: &str, id: &ContainerId) -> String {
    let name = format!("{}_{}_{container}-{id}", pod.name, pod.namespace);
    format!("{}.log", &name[..name.floor_char_boundary(LINK_LIMIT)])
}

/// Where seccomp profiles lie that pods name.
pub fn seccomp_profiles(root: &Path) -> PathBuf {
    root.join("seccomp")
}

/// What one pod has below the root directory of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodPaths {
    directory: PathBuf,
}

impl PodPaths {
    /// The paths of the pod of that UID.
    pub fn new(root: &Path, uid: &PodUid) -> Self {
        Self { directory: root.join("pods").join(uid.as_str()) }
    }

    /// All that the pod has.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its volumes, by plugin.
    pub fn volumes(&self) -> PathBuf {
        self.directory.join("volumes")
    }

    /// One volume. In a plugin's name, `~` stands for `/`.
    pub fn volume(&self, plugin: &str, name: &str) -> PathBuf {
        self.volumes().join(plugin.replace('/', "~")).join(name)
    }

    /// Parts of volumes that are mounted into containers.
    pub fn subpaths(&self) -> PathBuf {
        self.directory.join("volume-subpaths")
    }

    /// One part of a volume, by the container that mounts it and the mount's place in the container's list.
    pub fn subpath(&self, volume: &str, container: &str, index: usize) -> PathBuf {
        self.subpaths().join(volume).join(container).join(index.to_string())
    }

    /// Block volumes, by plugin.
    pub fn devices(&self) -> PathBuf {
        self.directory.join("volumeDevices")
    }

    /// What volume plugins keep for themselves.
    pub fn plugins(&self) -> PathBuf {
        self.directory.join("plugins")
    }

    /// The termination messages of one container's instances.
    pub fn container(&self, name: &str) -> PathBuf {
        self.directory.join("containers").join(name)
    }

    /// The termination messages of all containers.
    pub fn containers(&self) -> PathBuf {
        self.directory.join("containers")
    }

    /// What containers have as `/etc/hosts`.
    pub fn hosts(&self) -> PathBuf {
        self.directory.join("etc-hosts")
    }

    /// The ids of its user namespace.
    pub fn userns(&self) -> PathBuf {
        self.directory.join("userns")
    }

    /// The volumes whose place follows from the spec alone.
    pub fn known_volumes(&self, pod: &Pod) -> BTreeMap<String, VolumePath> {
        let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        let known = |volume: &Volume| Some((volume.name.clone(), self.known_volume(volume)?));
        volumes.iter().filter_map(known).collect()
    }

    fn known_volume(&self, volume: &Volume) -> Option<VolumePath> {
        if let Some(source) = &volume.host_path {
            let path = PathBuf::from(&source.path);
            return Some(VolumePath { path, read_only: false, relabel: false });
        }
        let (plugin, read_only) = plugin(volume)?;
        // What lies on a server is not ours to label.
        let (path, relabel) = (self.volume(plugin, &volume.name), volume.nfs.is_none());
        Some(VolumePath { path, read_only, relabel })
    }
}

/// The plugin of a volume as Kubernetes calls it. A kind of volume that we have no plugin for goes by its field in the spec.
pub fn volume_plugin(volume: &Volume) -> String {
    if volume.host_path.is_some() {
        return "kubernetes.io/host-path".to_owned();
    }
    let known = plugin(volume).map(|(plugin, _)| plugin.to_owned());
    known.unwrap_or_else(|| source_field(volume))
}

/// What the field of a volume's spec is called that says what it is made of.
fn source_field(volume: &Volume) -> String {
    let fields = serde_json::to_value(volume).unwrap_or_default();
    let names = fields.as_object().into_iter().flat_map(|fields| fields.keys());
    names.into_iter().find(|name| *name != "name").cloned().unwrap_or_default()
}

/// The plugin of a volume that the agent makes itself, and whether the volume is read-only.
fn plugin(volume: &Volume) -> Option<(&'static str, bool)> {
    let nfs = volume.nfs.as_ref();
    let kinds = [
        (nfs.is_some(), "kubernetes.io/nfs", nfs.is_some_and(|nfs| nfs.read_only == Some(true))),
        (volume.empty_dir.is_some(), "kubernetes.io/empty-dir", false),
        (volume.config_map.is_some(), "kubernetes.io/configmap", true),
        (volume.secret.is_some(), "kubernetes.io/secret", true),
        (volume.projected.is_some(), "kubernetes.io/projected", true),
        (volume.downward_api.is_some(), "kubernetes.io/downward-api", true),
    ];
    kinds.into_iter().find(|(is, ..)| *is).map(|(_, plugin, read_only)| (plugin, read_only))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::HostPathVolumeSource;

    use super::*;
    use crate::fixture::pod;

    fn volume(name: &str, edit: impl FnOnce(&mut Volume)) -> Volume {
        let mut volume = Volume { name: name.to_owned(), ..Volume::default() };
        edit(&mut volume);
        volume
    }

    #[test]
    fn a_pods_things_lie_where_a_go_kubelet_looks_for_them() {
        let paths = PodPaths::new(Path::new("/var/lib/kubelet"), &PodUid::from("u"));
        let rows = [
            (paths.directory().to_owned(), ""),
            (paths.volumes(), "/volumes"),
            (paths.volume("example.com/disk", "data"), "/volumes/example.com~disk/data"),
            (paths.subpaths(), "/volume-subpaths"),
            (paths.subpath("data", "app", 2), "/volume-subpaths/data/app/2"),
            (paths.devices(), "/volumeDevices"),
            (paths.plugins(), "/plugins"),
            (paths.container("app"), "/containers/app"),
            (paths.hosts(), "/etc-hosts"),
            (paths.userns(), "/userns"),
        ];
        for (path, expected) in rows {
            assert_eq!(path, PathBuf::from(format!("/var/lib/kubelet/pods/u{expected}")));
        }
    }

    #[test]
    fn logs_lie_by_pod_and_container_and_restart() {
        let directory = log_directory(Path::new("/var/log/pods"), &pod().build());
        assert_eq!(directory, PathBuf::from("/var/log/pods/default_web_uid-web"));
        assert_eq!(log_path("app", 4), "app/4.log");
    }

    #[test]
    fn a_log_is_linked_by_pod_and_container_in_a_name_that_fits() {
        let name = pod().build().full_name();
        assert_eq!(log_link(&name, "app", &"c1".into()), "web_default_app-c1.log");
        let long = log_link(&name, "app", &"c".repeat(300).into());
        assert!(long.len() == 255 && long.ends_with("ccc.log"), "{long}");
    }

    #[test]
    fn paths_of_local_volumes_follow_from_the_spec() {
        let host = HostPathVolumeSource { path: "/srv".to_owned(), type_: None };
        let rows = [
            (volume("a", |v| v.empty_dir = Some(Default::default())), "empty-dir", false),
            (volume("b", |v| v.config_map = Some(Default::default())), "configmap", true),
            (volume("c", |v| v.secret = Some(Default::default())), "secret", true),
            (volume("d", |v| v.projected = Some(Default::default())), "projected", true),
            (volume("e", |v| v.downward_api = Some(Default::default())), "downward-api", true),
        ];
        for (volume, plugin, read_only) in rows {
            let name = volume.name.clone();
            let pod = pod().spec(|spec| spec.volumes = Some(vec![volume])).build();
            let path = format!("/r/pods/uid-web/volumes/kubernetes.io~{plugin}/{name}");
            let expected = VolumePath { path: path.into(), read_only, relabel: true };
            let volumes = PodPaths::new(Path::new("/r"), &pod.uid()).known_volumes(&pod);
            assert_eq!(volumes, BTreeMap::from([(name, expected)]));
        }
        let host = volume("h", |v| v.host_path = Some(host));
        let claim = volume("p", |v| v.persistent_volume_claim = Some(Default::default()));
        let pod = pod().spec(|spec| spec.volumes = Some(vec![host, claim])).build();
        let volumes = PodPaths::new(Path::new("/r"), &pod.uid()).known_volumes(&pod);
        let expected = VolumePath { path: "/srv".into(), read_only: false, relabel: false };
        assert_eq!(volumes, BTreeMap::from([("h".to_owned(), expected)]));
    }
}
