//! What an agent's calls do on the machine.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_agent::seams::{DiskError, Furniture};
use oarsman_core::config::Payloads;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::view::ContainerView;
use oarsman_core::{config, termination_message};
use tokio::time::sleep;

use super::client::{PODS, RELEASE_CGROUP, RELEASE_VOLUMES, REMOVE, error};
use super::{DiskChange, FakeDisk, Ground, Violation};
use crate::trace::Entry;

/// Where the node's credentials for registries would lie.
const CREDENTIALS: &str = "/var/lib/oarsman/config.json";
/// How long one step takes. An agent may end, or the disk fail, between two of them.
const STEP: Duration = Duration::from_millis(1);

impl FakeDisk {
    /// Makes all a pod needs, one after the other.
    pub(super) async fn prepare(&self, pod: &Pod, files: &Payloads) {
        let uid = pod.uid();
        self.make(&uid, |pod| &mut pod.directory, DiskChange::DirectoryMade);
        sleep(STEP).await;
        self.make(&uid, |pod| &mut pod.cgroup, DiskChange::CgroupMade);
        if pod.spec().is_some_and(|spec| spec.volumes.iter().flatten().next().is_some()) {
            sleep(STEP).await;
            self.make(&uid, |pod| &mut pod.volumes, DiskChange::VolumesMade);
            self.replace_files(&uid, files);
        }
    }

    /// A volume without files among these keeps those it has.
    fn replace_files(&self, uid: &PodUid, files: &Payloads) {
        let mut ground = self.ground();
        let pod = ground.entry(uid.clone()).or_default();
        let before = pod.files.clone();
        pod.files.extend(files.clone());
        let is_new = pod.files != before;
        drop(ground);
        if is_new {
            self.saw(uid, DiskChange::FilesReplaced);
        }
    }

    pub(super) fn release_volumes(&self, uid: &PodUid) -> Result<(), DiskError> {
        if self.has_volumes(uid) && self.runs(uid) {
            return Err(self.violated(uid, RELEASE_VOLUMES, Violation::VolumesInUse));
        }
        self.unmake(uid, |pod| &mut pod.volumes, DiskChange::VolumesReleased);
        self.ground().entry(uid.clone()).and_modify(|pod| pod.files.clear());
        Ok(())
    }

    pub(super) fn release_cgroup(&self, uid: &PodUid) -> Result<(), DiskError> {
        if self.has_cgroup(uid) && self.runs(uid) {
            return Err(self.violated(uid, RELEASE_CGROUP, Violation::CgroupInUse));
        }
        self.unmake(uid, |pod| &mut pod.cgroup, DiskChange::CgroupRemoved);
        Ok(())
    }

    pub(super) fn remove(&self, uid: &PodUid) -> Result<(), DiskError> {
        if self.has_directory(uid) && (self.has_volumes(uid) || self.runs(uid)) {
            return Err(self.violated(uid, REMOVE, Violation::DirectoryInUse));
        }
        self.unmake(uid, |pod| &mut pod.directory, DiskChange::DirectoryRemoved);
        self.0.files.remove(&Path::new(PODS).join(uid.as_str()));
        let mut ground = self.ground();
        ground.entry(uid.clone()).and_modify(|pod| (pod.written, pod.synced) = (None, None));
        ground.retain(|_, pod| *pod != Ground::default());
        Ok(())
    }

    /// Writes a status into the pod's directory, which is made for it where there is none.
    pub(super) fn remember(&self, uid: &PodUid, status: PodStatus, lasting: bool) {
        self.make(uid, |pod| &mut pod.directory, DiskChange::DirectoryMade);
        let mut ground = self.ground();
        let pod = ground.entry(uid.clone()).or_default();
        if lasting {
            pod.synced = Some(status.clone());
        }
        pod.written = Some(status);
    }

    /// What the file says that the container sees at its termination message path.
    pub(super) fn last_words(&self, container: &ContainerView) -> String {
        let path = &container.label.termination_message_path;
        let file = self.0.runtime.mounted_at(container.id.as_str(), path);
        let written = file.and_then(|file| self.0.files.read(&file).ok());
        termination_message::from_file(&written.unwrap_or_default())
    }

    pub(super) fn log_names(&self, pod: &Pod, container: &str) -> Vec<String> {
        let directory = config::log_directory(&self.0.pod_logs, pod).join(container);
        let files = self.0.files.below(&directory);
        files.iter().filter_map(|path| name_in(&directory, path)).collect()
    }

    pub(super) fn credentials(&self) -> Option<String> {
        let file = self.0.files.read(Path::new(CREDENTIALS)).ok()?;
        String::from_utf8(file).ok()
    }

    pub(super) fn furnish(
        &self,
        uid: &PodUid,
        container: &str,
        restart_count: u32,
        hosts: Option<&str>,
    ) -> Result<Furniture, DiskError> {
        let of_pod = Path::new(PODS).join(uid.as_str());
        let of_container = of_pod.join("containers").join(container);
        let message_file = of_container.join(format!("{restart_count:08x}"));
        self.write(uid, &message_file, "")?;
        let hosts = hosts.map(|content| {
            let file = of_pod.join("etc-hosts");
            self.write(uid, &file, content).map(|()| file)
        });
        Ok(Furniture { message_file, hosts: hosts.transpose()? })
    }

    pub(super) fn discard_log(&self, uid: &PodUid, name: &FullName, container: &ContainerView) {
        let directory = format!("{}_{}_{uid}", name.namespace, name.name);
        let log = config::log_path(&container.name, container.label.restart_count);
        self.0.files.remove(&self.0.pod_logs.join(directory).join(log));
    }

    fn write(&self, uid: &PodUid, file: &Path, content: &str) -> Result<(), DiskError> {
        let written = self.0.files.write(file, content.as_bytes());
        written.map_err(|why| error("write into", uid.as_str(), why.to_string()))
    }

    fn make(&self, uid: &PodUid, part: fn(&mut Ground) -> &mut bool, change: DiskChange) {
        let had = std::mem::replace(part(self.ground().entry(uid.clone()).or_default()), true);
        if !had {
            self.saw(uid, change);
        }
    }

    pub(super) fn unmake(
        &self,
        uid: &PodUid,
        part: fn(&mut Ground) -> &mut bool,
        change: DiskChange,
    ) {
        let had = self.ground().get_mut(uid).map(part).map(std::mem::take);
        if had == Some(true) {
            self.saw(uid, change);
        }
    }

    fn has_directory(&self, uid: &PodUid) -> bool {
        self.ground().get(uid).is_some_and(|pod| pod.directory)
    }

    fn runs(&self, uid: &PodUid) -> bool {
        self.0.runtime.runs_pod(uid.as_str())
    }

    fn violated(&self, uid: &PodUid, call: &'static str, violation: Violation) -> DiskError {
        self.saw(uid, DiskChange::Violated(violation));
        error(call, uid.as_str(), "it is in use".to_owned())
    }

    fn saw(&self, uid: &PodUid, change: DiskChange) {
        self.0.trace.append(Entry::Disk { uid: uid.to_string(), change });
    }
}

/// The name of a file that lies in that very directory.
fn name_in(directory: &Path, file: &Path) -> Option<String> {
    let name = file.strip_prefix(directory).ok()?.to_str()?;
    (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
}
