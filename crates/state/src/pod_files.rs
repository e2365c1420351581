//! The seam to the files of pods that are not volumes: directories, files for containers, logs, termination messages.

mod directories;
mod log_rotation;
mod logs;
mod termination_message;
#[cfg(test)]
mod tests;
mod user_namespaces;

#[cfg(test)]
pub(crate) use log_rotation::tests as log_rotation_tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::PodPaths;
use oarsman_core::disk_usage::{DiskUsage, PodFileUsage};
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::log_rotation::{ContainerLogFile, LogFileState};
use oarsman_core::pod::PodExt;
use oarsman_core::view::ContainerView;
use oarsman_host::blocking::{BlockingKind, BlockingPool};
use oarsman_seam::seam;

use crate::error::{FileError, failed};
use crate::files::{check_container, paths};

use logs::LogDirectories;

/// The files of pods. Every call may be repeated: making what is there and removing what is gone succeed.
#[seam]
pub trait PodFiles: Send + Sync + 'static {
    /// Makes the pod's directories: its own, and the one for its logs.
    #[seam(call = "make the directories of", object = pod.uid())]
    async fn make_directories(&self, pod: &Pod) -> Result<(), FileError>;

    /// Makes what one container needs besides its pod's things: a directory for its log, a file for its termination message, and
    /// the hosts file with this content.
    #[seam(call = "make the files of a container of", object = pod.uid())]
    async fn make_container_files(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        hosts: Option<String>,
    ) -> Result<ContainerFiles, FileError>;

    /// What a container wrote as its termination message, cut to the last bytes that count.
    #[seam(call = "read the termination message of", object = pod)]
    async fn termination_message(
        &self,
        pod: &PodUid,
        container: &ContainerView,
    ) -> Result<String, FileError>;

    /// The names of the files in a container's log directory.
    #[seam(call = "list the logs of", object = pod.uid())]
    async fn log_names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, FileError>;

    /// Links the log of a started container under a name with the container's id.
    #[seam(call = "link a log of", object = pod.uid())]
    async fn link_log(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        id: &ContainerId,
    ) -> Result<(), FileError>;

    /// Removes the log of a container that is removed.
    #[seam(call = "remove a log of", object = pod)]
    async fn remove_log(
        &self,
        pod: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), FileError>;

    /// What there is of each of these logs, in the same order.
    #[seam(call = "read the sizes of logs")]
    async fn log_states(&self, logs: Vec<ContainerLogFile>)
    -> Result<Vec<LogFileState>, FileError>;

    /// Renames a log, after it has removed the oldest rotated ones beyond so many files; its new name. What writes to it goes on with
    /// the renamed file until the runtime is asked to open the log again.
    #[seam(call = "rotate a log of", object = log.pod)]
    async fn rotate_log(
        &self,
        log: &ContainerLogFile,
        max_files: usize,
        now: Timestamp,
    ) -> Result<String, FileError>;

    /// Gives a rotated log its name back, unless there is a new log.
    #[seam(call = "restore a log of", object = log.pod)]
    async fn restore_log(&self, log: &ContainerLogFile, rotated: &str) -> Result<(), FileError>;

    /// Compresses the rotated logs, except the newest.
    #[seam(call = "compress the logs of", object = log.pod)]
    async fn compress_logs(&self, log: &ContainerLogFile) -> Result<(), FileError>;

    /// The content of the files with the ids of user namespaces, of all pods that have one.
    #[seam(call = "read the user namespaces of the pods in the root directory")]
    async fn user_namespaces(&self) -> Result<BTreeMap<PodUid, String>, FileError>;

    /// Writes the file with the ids of a pod's user namespace, for good.
    #[seam(call = "write the user namespace of", object = pod)]
    async fn write_user_namespace(&self, pod: &PodUid, content: &str) -> Result<(), FileError>;

    /// Removes the file with the ids of a pod's user namespace, for good.
    #[seam(call = "remove the user namespace of", object = pod)]
    async fn remove_user_namespace(&self, pod: &PodUid) -> Result<(), FileError>;

    /// What the files hold that were made for a pod, its logs among them.
    #[seam(call = "count the files of", object = pod)]
    async fn usage(&self, pod: &PodUid) -> Result<PodFileUsage, FileError>;

    /// Removes the pod's directories. What is mounted in them stays, and so does the way to it.
    #[seam(call = "remove the directory of", object = pod)]
    async fn remove(&self, pod: &PodUid) -> Result<(), FileError>;

    /// Every pod that has a directory or logs.
    #[seam(call = "list the pods in the root directory")]
    async fn pods(&self) -> Result<BTreeMap<PodUid, FoundFiles>, FileError>;
}

/// What was made for one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerFiles {
    /// The empty file for its termination message.
    pub termination_message: PathBuf,
    /// Its hosts file, when there was content for it.
    pub hosts: Option<PathBuf>,
}

/// What there is of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// Whether it has a directory, which only this agent can have made. Logs lie where those of other agents may lie, too.
    pub directory: bool,
}

/// The root directories.
#[derive(Clone, Debug)]
pub struct PodFileSettings {
    /// The root directory of the agent.
    pub root: PathBuf,
    /// The directory of pods' logs.
    pub pod_logs: PathBuf,
    /// Where logs are linked by their containers' ids, if anywhere.
    pub container_logs: Option<PathBuf>,
}

/// Files of this machine.
#[derive(Clone, Debug)]
pub struct HostPodFiles(Arc<PodDirectories>);

/// The directories that all pods share.
#[derive(Debug)]
struct PodDirectories {
    settings: PodFileSettings,
    logs: LogDirectories,
    pool: BlockingPool,
    /// To compress a log takes seconds, for which nothing else of its pod waits.
    log_pool: BlockingPool,
    usage_pool: BlockingPool,
}

impl HostPodFiles {
    /// Makes the directories that all pods share where there are none.
    ///
    /// # Errors
    /// When one of the root directory cannot be made. Without directories for logs the agent starts, and pods that need them do not.
    pub fn open(settings: PodFileSettings) -> Result<Self, FileError> {
        let pool = BlockingPool::new(BlockingKind::PodFiles);
        directories::create_shared_directories(&settings.root)?;
        let logs = LogDirectories::open(&settings);
        let log_pool = BlockingPool::new(BlockingKind::ContainerLogs);
        let usage_pool = BlockingPool::new(BlockingKind::PodFileUsage);
        Ok(Self(Arc::new(PodDirectories { settings, logs, pool, log_pool, usage_pool })))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        object: &str,
        work: impl FnOnce(&PodDirectories) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let directories = Arc::clone(&self.0);
        let panicked = failed("work in", &self.0.settings.root);
        self.0.pool.run(object, move || work(&directories), panicked).await
    }

    async fn count(&self, pod: &PodUid, path: PathBuf) -> Result<DiskUsage, FileError> {
        let counted = self.0.usage_pool.count_usage(pod.as_str(), path.clone()).await;
        counted.map_err(failed("count", &path))
    }

    /// Work on the logs of one container.
    async fn with_log<T: Send + 'static>(
        &self,
        log: &ContainerLogFile,
        work: impl FnOnce(&LogDirectories, &ContainerLogFile) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        check_container(&log.container)?;
        let (directories, log) = (Arc::clone(&self.0), log.clone());
        let panicked = failed("work in", &self.0.settings.pod_logs);
        let object = log.directory().display().to_string();
        self.0.log_pool.run(&object, move || work(&directories.logs, &log), panicked).await
    }
}

impl PodDirectories {
    fn paths(&self, uid: &PodUid) -> Result<PodPaths, FileError> {
        paths(&self.settings.root, uid)
    }
}

#[async_trait]
impl PodFiles for HostPodFiles {
    async fn make_directories(&self, pod: &Pod) -> Result<(), FileError> {
        let pod = pod.clone();
        let object = pod.uid();
        self.blocking(object.as_str(), move |all| {
            all.make_directories(&pod, &all.paths(&pod.uid())?)
        })
        .await
    }

    async fn make_container_files(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        hosts: Option<String>,
    ) -> Result<ContainerFiles, FileError> {
        let (pod, container) = (pod.clone(), container.to_owned());
        let object = pod.uid();
        self.blocking(object.as_str(), move |all| {
            check_container(&container)?;
            all.logs.make_directory(&pod, Some(&container))?;
            let paths = all.paths(&pod.uid())?;
            let termination_message =
                directories::make_termination_message(&paths, &container, restart_count)?;
            let hosts =
                hosts.map(|content| directories::write_hosts(&paths, &content)).transpose()?;
            Ok(ContainerFiles { termination_message, hosts })
        })
        .await
    }

    async fn termination_message(
        &self,
        pod: &PodUid,
        container: &ContainerView,
    ) -> Result<String, FileError> {
        let (uid, container) = (pod.clone(), container.clone());
        self.blocking(pod.as_str(), move |all| all.read_termination_message(&uid, &container)).await
    }

    async fn log_names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, FileError> {
        let (pod, container) = (pod.clone(), container.to_owned());
        let object = pod.uid();
        self.blocking(object.as_str(), move |all| all.logs.names(&pod, &container)).await
    }

    async fn link_log(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        id: &ContainerId,
    ) -> Result<(), FileError> {
        let (pod, container, id) = (pod.clone(), container.to_owned(), id.clone());
        let object = pod.uid();
        self.blocking(object.as_str(), move |all| {
            all.logs.link(&pod, &container, restart_count, &id)
        })
        .await
    }

    async fn remove_log(
        &self,
        pod: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), FileError> {
        let (uid, name, container) = (pod.clone(), name.clone(), container.clone());
        self.blocking(pod.as_str(), move |all| all.logs.remove(&uid, &name, &container)).await
    }

    async fn log_states(
        &self,
        logs: Vec<ContainerLogFile>,
    ) -> Result<Vec<LogFileState>, FileError> {
        let directories = Arc::clone(&self.0);
        let panicked = failed("work in", &self.0.settings.pod_logs);
        self.0.log_pool.run("", move || directories.logs.states(&logs), panicked).await
    }

    async fn rotate_log(
        &self,
        log: &ContainerLogFile,
        max_files: usize,
        now: Timestamp,
    ) -> Result<String, FileError> {
        self.with_log(log, move |logs, log| logs.rotate(log, max_files, now)).await
    }

    async fn restore_log(&self, log: &ContainerLogFile, rotated: &str) -> Result<(), FileError> {
        let rotated = rotated.to_owned();
        self.with_log(log, move |logs, log| logs.restore(log, &rotated)).await
    }

    async fn compress_logs(&self, log: &ContainerLogFile) -> Result<(), FileError> {
        // Between two files, others have their turn.
        while self.with_log(log, LogDirectories::compress_next).await? {}
        Ok(())
    }

    async fn user_namespaces(&self) -> Result<BTreeMap<PodUid, String>, FileError> {
        self.blocking("", PodDirectories::user_namespaces).await
    }

    async fn write_user_namespace(&self, pod: &PodUid, content: &str) -> Result<(), FileError> {
        let (uid, content) = (pod.clone(), content.to_owned());
        self.blocking(pod.as_str(), move |all| all.write_user_namespace(&uid, &content)).await
    }

    async fn remove_user_namespace(&self, pod: &PodUid) -> Result<(), FileError> {
        let uid = pod.clone();
        self.blocking(pod.as_str(), move |all| all.remove_user_namespace(&uid)).await
    }

    async fn usage(&self, pod: &PodUid) -> Result<PodFileUsage, FileError> {
        let paths = self.0.paths(pod)?;
        let uid = pod.clone();
        let logs = self.blocking(pod.as_str(), move |all| all.logs.of_containers(&uid)).await?;
        let mut usage = PodFileUsage {
            hosts: self.count(pod, paths.hosts()).await?,
            termination_messages: self.count(pod, paths.containers()).await?,
            logs: BTreeMap::new(),
        };
        for (container, path) in logs {
            usage.logs.insert(container, self.count(pod, path).await?);
        }
        Ok(usage)
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), FileError> {
        // Between two parts of a large directory, others have their turn.
        loop {
            let uid = pod.clone();
            let is_done = self.blocking(pod.as_str(), move |all| {
                let paths = all.paths(&uid)?;
                // The directory goes last: of a pod without it, logs are not found again by any uid.
                Ok(all.logs.remove_directory(&uid)? && directories::remove_directory(&paths)?)
            });
            if is_done.await? {
                return Ok(());
            }
        }
    }

    async fn pods(&self) -> Result<BTreeMap<PodUid, FoundFiles>, FileError> {
        self.blocking("", |all| {
            all.logs.remove_dangling_links();
            let logs = all.logs.pods().map(|uid| (uid, FoundFiles { directory: false }));
            let own = all.with_directories()?.map(|uid| (uid, FoundFiles { directory: true }));
            Ok(logs.chain(own).collect())
        })
        .await
    }
}
