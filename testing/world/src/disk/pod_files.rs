//! The seam to pods' directories, logs and termination messages, on the fake disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::disk_usage::{DiskUsage, PodFileUsage};
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::log_rotation::{ContainerLogFile, LogFileState};
use oarsman_core::pod::PodExt;
use oarsman_core::view::ContainerView;
use oarsman_core::{cri_spec, termination_message};
use oarsman_state::{ContainerFiles, FileError, FoundFiles, PodFiles};

use super::log_rotation::rotated_of;
use super::{DiskChange, DiskViolation, FakeDisk, IN_USE, PodOnDisk};

/// The directory of pods' directories.
const PODS: &str = "/var/lib/oarsman/pods";

#[async_trait]
impl PodFiles for FakeDisk {
    async fn make_directories(&self, pod: &Pod) -> Result<(), FileError> {
        self.set_part(&pod.uid(), |pod| &mut pod.directory, DiskChange::DirectoryMade);
        Ok(())
    }

    async fn make_container_files(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        hosts: Option<String>,
    ) -> Result<ContainerFiles, FileError> {
        let of_pod = Path::new(PODS).join(pod.uid().as_str());
        let of_container = of_pod.join("containers").join(container);
        let termination_message = of_container.join(format!("{restart_count:08x}"));
        self.write(&termination_message, "")?;
        let hosts = hosts.map(|content| {
            let file = of_pod.join("etc-hosts");
            self.write(&file, &content).map(|()| file)
        });
        Ok(ContainerFiles { termination_message, hosts: hosts.transpose()? })
    }

    /// The content of the file that is mounted at the container's termination message path.
    async fn termination_message(
        &self,
        _: &PodUid,
        container: &ContainerView,
    ) -> Result<String, FileError> {
        let path = &container.label.termination_message_path;
        let file = self.0.runtime.mounted_at(container.id.as_str(), path);
        let written = file.and_then(|file| self.0.files.read(&file).ok());
        Ok(termination_message::from_file(&written.unwrap_or_default()))
    }

    async fn log_names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, FileError> {
        let directory = cri_spec::log_directory(&self.0.pod_logs, pod).join(container);
        let files = self.0.files.below(&directory);
        Ok(files.iter().filter_map(|path| name_in(&directory, path)).collect())
    }

    /// The simulation has no reader of links by container id.
    async fn link_log(&self, _: &Pod, _: &str, _: u32, _: &ContainerId) -> Result<(), FileError> {
        Ok(())
    }

    async fn remove_log(
        &self,
        pod: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), FileError> {
        let directory = format!("{}_{}_{pod}", name.namespace, name.name);
        let log = cri_spec::log_path(&container.name, container.label.restart_count);
        let log = self.0.pod_logs.join(directory).join(log);
        self.0.files.remove(&log);
        for rotated in rotated_of(&self.0.files, &log) {
            self.0.files.remove(&rotated);
        }
        Ok(())
    }

    async fn log_states(
        &self,
        logs: Vec<ContainerLogFile>,
    ) -> Result<Vec<LogFileState>, FileError> {
        Ok(logs.iter().map(|log| self.log_state(log)).collect())
    }

    async fn rotate_log(
        &self,
        log: &ContainerLogFile,
        max_files: usize,
        now: Timestamp,
    ) -> Result<String, FileError> {
        self.rotate(log, max_files, now).await
    }

    async fn restore_log(&self, log: &ContainerLogFile, rotated: &str) -> Result<(), FileError> {
        self.restore(log, rotated)
    }

    async fn compress_logs(&self, log: &ContainerLogFile) -> Result<(), FileError> {
        self.compress(log).await
    }

    async fn user_namespaces(&self) -> Result<BTreeMap<PodUid, String>, FileError> {
        let uids: Vec<PodUid> = self.lock_pods().keys().cloned().collect();
        let read = |uid: PodUid| {
            let content = self.0.files.read(&user_namespace_file(&uid)).ok()?;
            Some((uid, String::from_utf8_lossy(&content).into_owned()))
        };
        Ok(uids.into_iter().filter_map(read).collect())
    }

    async fn write_user_namespace(&self, pod: &PodUid, content: &str) -> Result<(), FileError> {
        self.write(&user_namespace_file(pod), content)
    }

    async fn remove_user_namespace(&self, pod: &PodUid) -> Result<(), FileError> {
        self.0.files.remove(&user_namespace_file(pod));
        Ok(())
    }

    /// Only whether there are files: their sizes are not kept.
    async fn usage(&self, pod: &PodUid) -> Result<PodFileUsage, FileError> {
        let inodes = self.has_directory(pod).into();
        Ok(PodFileUsage { hosts: DiskUsage { bytes: 0, inodes }, ..PodFileUsage::default() })
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), FileError> {
        let directory = Path::new(PODS).join(pod.as_str());
        let holds = self.has_volumes(pod) || self.has_sub_paths(pod) || self.runs(pod);
        if self.has_directory(pod) && holds {
            self.trace_change(pod, DiskChange::Violated(DiskViolation::DirectoryInUse));
            let (doing, why) = ("remove the directory", IN_USE.to_owned());
            return Err(FileError { doing, path: directory, why });
        }
        self.clear_part(pod, |pod| &mut pod.directory, DiskChange::DirectoryRemoved);
        self.0.files.remove(&directory);
        self.lock_pods().retain(|_, pod| *pod != PodOnDisk::default());
        Ok(())
    }

    async fn pods(&self) -> Result<BTreeMap<PodUid, FoundFiles>, FileError> {
        let on_disk = self.lock_pods();
        let held = on_disk.iter().filter(|(_, pod)| pod.directory);
        Ok(held.map(|(uid, _)| (uid.clone(), FoundFiles { directory: true })).collect())
    }
}

impl FakeDisk {
    fn has_directory(&self, uid: &PodUid) -> bool {
        self.lock_pods().get(uid).is_some_and(|pod| pod.directory)
    }

    fn write(&self, file: &Path, content: &str) -> Result<(), FileError> {
        let written = self.0.files.write(file, content.as_bytes());
        written.map_err(|why| {
            let (path, why) = (file.to_owned(), why.to_string());
            FileError { doing: "write", path, why }
        })
    }
}

/// The file with the ids of a pod's user namespace.
fn user_namespace_file(pod: &PodUid) -> PathBuf {
    Path::new(PODS).join(pod.as_str()).join("userns")
}

/// The name of a file directly in that directory.
fn name_in(directory: &Path, file: &Path) -> Option<String> {
    let name = file.strip_prefix(directory).ok()?.to_str()?;
    (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
}
