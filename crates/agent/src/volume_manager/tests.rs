//! The volume manager over volumes that hang, fail and are counted, in virtual time.

use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, EmptyDirVolumeSource, HostPathVolumeSource, PersistentVolume,
    PersistentVolumeClaimVolumeSource, PersistentVolumeSpec, PodSpec, Volume, VolumeMount,
};
use oarsman_core::cri_spec::{EnvFile, Payload, PayloadFile, PropagatedMount};
use oarsman_core::disk_usage::EmptyDirUsage;
use oarsman_core::persistent_volume::{ClaimedVolume, PersistentVolumePlugin};
use oarsman_core::volume_manager::{MountedVolume, VolumeToMount};
use tokio::time::timeout;

use super::*;

/// Volumes in memory. One called `stuck` is never set up.
#[derive(Default)]
struct FakeVolumes {
    /// Every set-up that was done, by the names of its volumes.
    set_ups: Mutex<Vec<Vec<String>>>,
    mounted: Mutex<BTreeMap<String, String>>,
    /// The volumes of which parts are mounted.
    sub_paths: Mutex<Vec<String>>,
}

#[oarsman_seam::async_trait]
impl Volumes for FakeVolumes {
    async fn set_up(&self, _: &Arc<Pod>, volumes: Vec<VolumeToMount>) -> Result<(), VolumeError> {
        if volumes.iter().any(|volume| volume.name == "stuck") {
            pending::<()>().await;
        }
        let names = volumes.iter().map(|volume| volume.name.clone()).collect();
        self.set_ups.lock().unwrap().push(names);
        self.mounted.lock().unwrap().extend(volumes.into_iter().map(|v| (v.name, v.plugin)));
        Ok(())
    }

    async fn tear_down(&self, _: &PodUid, volumes: Vec<MountedVolume>) -> Result<(), VolumeError> {
        self.mounted.lock().unwrap().retain(|name, _| volumes.iter().all(|v| v.name != *name));
        Ok(())
    }

    async fn set_up_sub_paths(
        &self,
        _: &PodUid,
        sub_paths: Vec<SubPathToMount>,
    ) -> Result<(), VolumeError> {
        self.sub_paths.lock().unwrap().extend(sub_paths.into_iter().map(|part| part.volume));
        Ok(())
    }

    async fn tear_down_sub_paths(&self, _: &PodUid) -> Result<(), VolumeError> {
        assert!(!self.mounted.lock().unwrap().is_empty(), "it comes before the volumes");
        self.sub_paths.lock().unwrap().clear();
        Ok(())
    }

    async fn read_env_file(&self, _: &PodUid, _: &EnvFile) -> Result<Option<String>, VolumeError> {
        Ok(None)
    }

    async fn empty_dir_usage(&self, _: &Arc<Pod>) -> Result<Vec<EmptyDirUsage>, VolumeError> {
        Ok(Vec::new())
    }

    async fn check_propagation(&self, _: Vec<PropagatedMount>) -> Result<(), VolumeError> {
        Ok(())
    }

    async fn mounted(&self, _: &PodUid) -> Result<Vec<MountedVolume>, VolumeError> {
        let mounted = self.mounted.lock().unwrap().clone().into_iter();
        Ok(mounted.map(|(name, plugin)| MountedVolume::found(name, plugin)).collect())
    }
}

impl FakeVolumes {
    fn set_ups(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut self.set_ups.lock().unwrap())
    }
}

fn host_path(name: &str) -> Volume {
    let host_path = Some(HostPathVolumeSource::default());
    Volume { name: name.to_owned(), host_path, ..Volume::default() }
}

fn pod(others: &[Volume]) -> Pod {
    let (name, config_map) = ("map".to_owned(), Some(ConfigMapVolumeSource::default()));
    let map = Volume { name, config_map, ..Volume::default() };
    let (name, empty_dir) = ("dir".to_owned(), Some(EmptyDirVolumeSource::default()));
    let dir = Volume { name, empty_dir, ..Volume::default() };
    let volumes: Vec<Volume> = [map, dir].into_iter().chain(others.iter().cloned()).collect();
    let mount = |volume: &Volume| VolumeMount { name: volume.name.clone(), ..Default::default() };
    let mounts = Some(volumes.iter().map(mount).collect());
    let main = Container { volume_mounts: mounts, ..Container::default() };
    let spec = PodSpec { containers: vec![main], volumes: Some(volumes), ..PodSpec::default() };
    let mut pod = Pod { spec: Some(spec), ..Pod::default() };
    pod.metadata.uid = Some("u".to_owned());
    pod
}

fn files(text: &str) -> Payloads {
    let file = PayloadFile { bytes: text.as_bytes().into(), mode: 0o644, owner: None, keep: false };
    Payloads::from([("map".to_owned(), Payload::from([("key".to_owned(), file)]))])
}

fn manager() -> (VolumeManager, Arc<FakeVolumes>) {
    let fake = Arc::new(FakeVolumes::default());
    let volumes = Arc::clone(&fake) as Arc<dyn Volumes>;
    (VolumeManager::new(volumes, "/root".into(), Arc::default()), fake)
}

/// Without claims.
async fn mount(manager: &VolumeManager, pod: &Pod, payloads: Payloads) -> Result<(), MountError> {
    manager.wait_for_attach_and_mount(pod, payloads, &ClaimedVolumes::new()).await
}

#[tokio::test]
async fn volumes_are_set_up_once_and_refreshed_when_their_files_change() {
    let ((manager, fake), pod) = (manager(), pod(&[]));
    let rows = [
        (files("old"), vec![vec!["dir".to_owned(), "map".to_owned()]]),
        (files("old"), vec![]),
        (files("new"), vec![vec!["map".to_owned()]]),
        (Payloads::new(), vec![]),
    ];
    for (payloads, expected) in rows {
        mount(&manager, &pod, payloads.clone()).await.unwrap();
        assert_eq!(fake.set_ups(), expected, "{payloads:?}");
    }
    manager.wait_for_unmount(&pod.uid()).await.unwrap();
    assert!(fake.mounted.lock().unwrap().is_empty());
    mount(&manager, &pod, files("new")).await.unwrap();
    assert_eq!(fake.set_ups().concat(), ["dir", "map"], "what was torn down is set up again");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_volume_does_not_delay_the_others() {
    let ((manager, fake), pod) = (manager(), pod(&[host_path("stuck"), host_path("host")]));
    let mounting = mount(&manager, &pod, files("old"));
    assert!(timeout(Duration::from_secs(60), mounting).await.is_err(), "it waits for all");
    assert_eq!(fake.set_ups(), [vec!["dir", "map"], vec!["host"]]);
    let again = mount(&manager, &pod, files("old"));
    assert!(timeout(Duration::from_secs(60), again).await.is_err());
    assert!(fake.set_ups().is_empty(), "what is there is not set up again");
}

/// A claim `disk` of the pod with this UID, on a volume that one pod uses at a time.
fn with_claim(uid: &str) -> (Pod, ClaimedVolumes) {
    let (name, claim) = ("disk".to_owned(), Some(PersistentVolumeClaimVolumeSource::default()));
    let mut pod = pod(&[Volume { name, persistent_volume_claim: claim, ..Volume::default() }]);
    pod.metadata.uid = Some(uid.to_owned());
    let spec = PersistentVolumeSpec {
        access_modes: Some(vec!["ReadWriteOncePod".to_owned()]),
        ..PersistentVolumeSpec::default()
    };
    let mut volume = PersistentVolume { spec: Some(spec), ..PersistentVolume::default() };
    volume.metadata.name = Some("pv-1".to_owned());
    let plugin = PersistentVolumePlugin::Local;
    let claimed = ClaimedVolume { volume: Arc::new(volume), plugin, read_only: false };
    (pod, ClaimedVolumes::from([("disk".to_owned(), Arc::new(claimed))]))
}

#[tokio::test]
async fn a_volume_of_one_pod_is_mounted_for_the_next_when_the_first_has_given_it_back() {
    let (manager, fake) = manager();
    let ((first, claimed), (second, _)) = (with_claim("first"), with_claim("second"));
    manager.wait_for_attach_and_mount(&first, files("old"), &claimed).await.unwrap();
    assert_eq!(fake.set_ups(), [vec!["dir", "map"], vec!["disk"]]);
    let mounts = || manager.metrics.claims.all();
    let shown: Vec<_> = mounts().into_iter().map(|(_, mount)| (mount.volume, mount.path)).collect();
    let path = "/root/pods/first/volumes/kubernetes.io~local-volume/pv-1";
    assert_eq!(shown, [("disk".to_owned(), PathBuf::from(path))]);
    let refused = manager.wait_for_attach_and_mount(&second, files("old"), &claimed).await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("already in use by another pod, first"), "{said}");
    assert!(fake.set_ups().is_empty());
    manager.wait_for_unmount(&first.uid()).await.unwrap();
    assert_eq!(mounts(), [], "what is not mounted is not measured");
    manager.wait_for_attach_and_mount(&second, files("old"), &claimed).await.unwrap();
    assert_eq!(fake.set_ups().concat().len(), 3);
}

#[tokio::test]
async fn parts_of_volumes_are_where_the_layout_says_and_go_before_the_volumes() {
    let ((manager, fake), pod) = (manager(), pod(&[]));
    manager.wait_for_attach_and_mount(&pod, files("old"), &ClaimedVolumes::new()).await.unwrap();
    let part = SubPathToMount {
        volume: "dir".to_owned(),
        plugin: "kubernetes.io/empty-dir".to_owned(),
        container: "app".to_owned(),
        index: 2,
        volume_path: "/v".into(),
        sub_path: "a".into(),
    };
    let places = manager.set_up_sub_paths(&pod.uid(), vec![part]).await.unwrap();
    let expected = PathBuf::from("/root/pods/u/volume-subpaths/dir/app/2");
    assert_eq!(places, BTreeMap::from([(2, expected)]));
    manager.wait_for_unmount(&pod.uid()).await.unwrap();
    assert!(fake.sub_paths.lock().unwrap().is_empty() && fake.mounted.lock().unwrap().is_empty());
}
