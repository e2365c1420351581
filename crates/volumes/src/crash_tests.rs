//! Making and removing a volume of each kind, killed before any of its changes: the next agent completes either, nothing is left, and
//! nothing is removed that is not the volume's own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, LocalVolumeSource, PersistentVolume, PersistentVolumeSpec, Pod, Volume, VolumeMount,
};
use oarsman_clock::SystemClock;
use oarsman_core::cri_spec::{Payload, PayloadFile, Payloads, PodPaths};
use oarsman_core::ids::PodUid;
use oarsman_core::persistent_volume::{ClaimedVolume, ClaimedVolumes, PersistentVolumePlugin};
use oarsman_core::volume_manager::{ActualStateOfWorld, DesiredStateOfWorld, reconcile};
use oarsman_crash::kill_at_every_change;
use oarsman_host::mounts;

use crate::{HostVolumes, Volumes};

/// Each kind of volume that is made on this machine, as the API writes its source.
const KINDS: [(&str, &str); 8] = [
    ("empty_dir", r#"{ "emptyDir": {} }"#),
    ("memory", r#"{ "emptyDir": { "medium": "Memory", "sizeLimit": "1Mi" } }"#),
    ("config_map", r#"{ "configMap": { "name": "c" } }"#),
    ("secret", r#"{ "secret": { "secretName": "s" } }"#),
    ("projected", r#"{ "projected": { "sources": [] } }"#),
    ("downward_api", r#"{ "downwardAPI": { "items": [] } }"#),
    ("host_path", r#"{ "hostPath": { "path": "HOST/made", "type": "DirectoryOrCreate" } }"#),
    ("local", r#"{ "persistentVolumeClaim": { "claimName": "disk" } }"#),
];

/// An agent's root directory, and a directory of the host beside it that pods use and nothing may be removed from.
struct VolumeNode {
    root: PathBuf,
    host: PathBuf,
    pod: Arc<Pod>,
    payloads: Payloads,
    claimed: ClaimedVolumes,
}

impl VolumeNode {
    fn new(place: &Path, kind: &str) -> Self {
        let host = place.join("host");
        let (_, source) = KINDS.iter().find(|(name, _)| *name == kind).unwrap();
        let source = source.replace("HOST", &host.display().to_string());
        let mut volume: BTreeMap<String, k8s_openapi::serde_json::Value> =
            k8s_openapi::serde_json::from_str(&source).unwrap();
        volume.insert("name".to_owned(), "v".into());
        let volume = k8s_openapi::serde_json::to_value(volume).unwrap();
        let volume: Volume = k8s_openapi::serde_json::from_value(volume).unwrap();
        let has_files = volume.empty_dir.is_none() && !matches!(kind, "host_path" | "local");
        let files = ["deep/b"].map(|path| (path.to_owned(), file(path)));
        let payloads = has_files.then(|| ("v".to_owned(), Payload::from(files)));
        Self {
            root: place.join("root"),
            claimed: if kind == "local" { claimed(&host) } else { ClaimedVolumes::new() },
            host,
            pod: Arc::new(pod(volume)),
            payloads: payloads.into_iter().collect(),
        }
    }

    /// What is there before the pod comes.
    fn prepare(&self) {
        fs::create_dir_all(self.host.join("disk")).unwrap();
        fs::write(self.host.join("disk/kept"), "precious").unwrap();
        fs::create_dir_all(self.paths().directory()).unwrap();
    }

    fn paths(&self) -> PodPaths {
        PodPaths::new(&self.root, &PodUid::from("u"))
    }

    fn volumes(&self) -> HostVolumes {
        HostVolumes::new(self.root.clone(), Arc::new(SystemClock::start()))
    }

    async fn set_up(&self) {
        let desired = DesiredStateOfWorld::of(&self.pod, self.payloads.clone(), &self.claimed);
        let todo = reconcile(&desired, &ActualStateOfWorld::default());
        self.volumes().set_up(&self.pod, todo.set_up).await.unwrap();
    }

    /// As an agent does that finds what one before it has left.
    async fn tear_down(&self) {
        let (volumes, uid) = (self.volumes(), PodUid::from("u"));
        let found = volumes.mounted(&uid).await.unwrap();
        volumes.tear_down(&uid, found).await.unwrap();
    }

    fn mounted(&self) -> Vec<PathBuf> {
        let all = mounts::current().unwrap();
        mounts::beneath(&all, &self.root).map(|mount| mount.point.clone()).collect()
    }

    /// Everything in the directories of the pod's plugins.
    fn left(&self) -> Vec<PathBuf> {
        let entries = |directory: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(directory).into_iter().flatten();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        entries(&self.paths().volumes()).iter().flat_map(|plugin| entries(plugin)).collect()
    }

    fn assert_kept(&self, moment: &str) {
        let kept = fs::read_to_string(self.host.join("disk/kept"));
        assert_eq!(kept.ok().as_deref(), Some("precious"), "{moment}");
    }

    /// What a container finds in the volume.
    fn assert_is_whole(&self, moment: &str) {
        let names = ["v", "pv-1"];
        let is_volume = |path: &&PathBuf| names.iter().any(|name| path.ends_with(name));
        let left = self.left();
        let volumes: Vec<_> = left.iter().filter(is_volume).collect();
        let in_tree = usize::from(self.pod_volume().host_path.is_none());
        assert_eq!((left.len(), volumes.len()), (in_tree, in_tree), "{moment}: {left:?}");
        assert!(self.mounted().len() <= 1, "{moment}: mounted twice: {:?}", self.mounted());
        for (path, file) in self.payloads.get("v").into_iter().flatten() {
            let found = fs::read(volumes[0].join(path)).unwrap();
            assert_eq!(found, file.bytes.as_ref(), "{moment}: {path}");
        }
        if self.pod_volume().persistent_volume_claim.is_some() {
            let found = fs::read_to_string(volumes[0].join("kept")).unwrap();
            assert_eq!(found, "precious", "{moment}");
        }
    }

    fn pod_volume(&self) -> &Volume {
        &self.pod.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0]
    }
}

fn file(text: &str) -> PayloadFile {
    PayloadFile { bytes: text.as_bytes().into(), mode: 0o640, owner: None, keep: false }
}

fn claimed(host: &Path) -> ClaimedVolumes {
    let path = host.join("disk").display().to_string();
    let local = Some(LocalVolumeSource { path, fs_type: None });
    let spec = PersistentVolumeSpec { local, ..PersistentVolumeSpec::default() };
    let mut volume = PersistentVolume { spec: Some(spec), ..PersistentVolume::default() };
    volume.metadata.name = Some("pv-1".to_owned());
    let plugin = PersistentVolumePlugin::Local;
    let claimed = ClaimedVolume { volume: Arc::new(volume), plugin, read_only: false };
    ClaimedVolumes::from([("v".to_owned(), Arc::new(claimed))])
}

fn pod(volume: Volume) -> Pod {
    let mut pod = Pod::default();
    let mount = VolumeMount { name: volume.name.clone(), ..VolumeMount::default() };
    let main = Container { volume_mounts: Some(vec![mount]), ..Container::default() };
    let spec = pod.spec.get_or_insert_default();
    (spec.containers, spec.volumes) = (vec![main], Some(vec![volume]));
    pod.metadata.uid = Some("u".to_owned());
    pod
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The child: makes the volume and removes it.
fn make_and_remove(kind: &str) {
    let node = VolumeNode::new(&oarsman_crash::directory(), kind);
    runtime().block_on(async {
        node.set_up().await;
        node.tear_down().await;
    });
}

/// After every kill, one agent makes the volume anew and removes it. Before every other one it is only removed, as that of a pod which was
/// deleted meanwhile.
fn kill_at_every_step(kind: &str, least: usize) {
    let runtime = runtime();
    let mut number = 0;
    let child = format!("crash_tests::child_{kind}");
    let prepare = |place: &Path| VolumeNode::new(place, kind).prepare();
    let kills = kill_at_every_change(&child, prepare, |place, moment| {
        let node = VolumeNode::new(place, kind);
        node.assert_kept(moment);
        number += 1;
        if number % 2 == 0 {
            runtime.block_on(node.set_up());
            node.assert_is_whole(moment);
        }
        runtime.block_on(node.tear_down());
        assert_eq!((node.mounted(), node.left()), (Vec::new(), Vec::new()), "{moment}");
        node.assert_kept(moment);
    });
    assert!(kills >= least, "{kind} was killed {kills} times");
}

#[test]
#[ignore = "the child of the next test"]
fn child_empty_dir() {
    make_and_remove("empty_dir");
}

#[test]
fn an_empty_dir_is_made_and_removed_wherever_the_agent_was_killed() {
    kill_at_every_step("empty_dir", 4);
}

#[test]
#[ignore = "the child of the next test"]
fn child_memory() {
    make_and_remove("memory");
}

#[test]
fn one_in_memory_is_made_and_removed_wherever_the_agent_was_killed() {
    kill_at_every_step("memory", 6);
}

#[test]
#[ignore = "the child of the next test"]
fn child_config_map() {
    make_and_remove("config_map");
}

#[test]
fn a_config_map_is_made_and_removed_wherever_the_agent_was_killed() {
    kill_at_every_step("config_map", 20);
}

#[test]
#[ignore = "the child of the next test"]
fn child_secret() {
    make_and_remove("secret");
}

#[test]
fn a_secret_is_made_and_removed_wherever_the_agent_was_killed() {
    kill_at_every_step("secret", 20);
}

#[test]
#[ignore = "the child of the next test"]
fn child_projected() {
    make_and_remove("projected");
}

#[test]
fn a_projected_volume_is_made_and_removed_wherever_the_agent_was_killed() {
    kill_at_every_step("projected", 20);
}

#[test]
#[ignore = "the child of the next test"]
fn child_downward_api() {
    make_and_remove("downward_api");
}

#[test]
fn a_downward_api_is_made_and_removed_wherever_the_agent_was_killed() {
    kill_at_every_step("downward_api", 20);
}

#[test]
#[ignore = "the child of the next test"]
fn child_host_path() {
    make_and_remove("host_path");
}

#[test]
fn a_host_path_is_made_and_stays_wherever_the_agent_was_killed() {
    kill_at_every_step("host_path", 1);
}

#[test]
#[ignore = "the child of the next test"]
fn child_local() {
    make_and_remove("local");
}

#[test]
fn a_local_volume_is_mounted_and_keeps_its_data_wherever_the_agent_was_killed() {
    kill_at_every_step("local", 4);
}
