//! Log directories, the links by which logs are found by container, and when both go.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::{log_directory, log_link, log_path};
use oarsman_core::gc::logs::pod_of;
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::pod::PodExt;
use oarsman_core::view::ContainerView;
use oarsman_host::beneath::RootDirectory;
use oarsman_host::tree;

use super::PodDirectories;
use crate::error::{FileError, failed};
use crate::files::{each_name, make_directory, names_in, unless_gone};

impl PodDirectories {
    /// Makes a pod's log directory, or within it a container's. Log collectors of any user go through them.
    pub(super) fn make_log_directory(
        &self,
        pod: &Pod,
        container: Option<&str>,
    ) -> Result<(), FileError> {
        let of_pod = log_directory(&self.settings.pod_logs, pod);
        make_directory(&container.map_or(of_pod.clone(), |name| of_pod.join(name)), 0o755)
    }

    /// A container's log file, below its pod's log directory.
    pub(super) fn log_of(container: &ContainerView) -> String {
        log_path(&container.name, container.label.restart_count)
    }

    /// The name of the log directory of a pod of which only the UID is known.
    pub(super) fn log_directory_of(&self, uid: &PodUid) -> Result<Option<String>, FileError> {
        let mut own = None;
        each_name(&self.settings.pod_logs, &mut |name| {
            if pod_of(name).as_ref() == Some(uid) {
                own = Some(name.to_owned());
            }
            own.is_none()
        })?;
        Ok(own)
    }

    pub(super) fn log_names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, FileError> {
        names_in(&log_directory(&self.settings.pod_logs, pod).join(container))
    }

    pub(super) fn link_log(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        id: &ContainerId,
    ) -> Result<(), FileError> {
        let Some(links) = &self.settings.container_logs else { return Ok(()) };
        let log =
            log_directory(&self.settings.pod_logs, pod).join(log_path(container, restart_count));
        let link = links.join(log_link(&pod.full_name(), container, id));
        let make = || {
            unless_gone(fs::remove_file(&link))?;
            symlink(&log, &link)
        };
        make().map_err(failed("link the log at", &link))
    }

    /// Removes a container's log with all that was rotated away from it, and its link.
    pub(super) fn remove_log(
        &self,
        uid: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), FileError> {
        if let Some(links) = &self.settings.container_logs {
            let link = links.join(log_link(name, &container.name, &container.id));
            unless_gone(fs::remove_file(&link)).map_err(failed("remove", &link))?;
        }
        let of_pod = format!("{}_{}_{uid}", name.namespace, name.name);
        let below = Path::new(&of_pod).join(&container.name);
        let directory = self.settings.pod_logs.join(&below);
        let log = format!("{}.log", container.label.restart_count);
        unless_gone(remove_logs(&self.settings.pod_logs, &below, &log))
            .map_err(failed("remove the logs in", &directory))
    }

    pub(super) fn remove_log_directory(&self, uid: &PodUid) -> Result<(), FileError> {
        let Some(name) = self.log_directory_of(uid)? else { return Ok(()) };
        let directory = self.settings.pod_logs.join(name);
        tree::remove_tree(&directory).map_err(failed("remove the logs in", &directory))?;
        self.remove_dangling_links()
    }

    /// Pods that have logs.
    pub(super) fn with_logs(&self) -> Result<impl Iterator<Item = PodUid>, FileError> {
        let names = names_in(&self.settings.pod_logs)?;
        Ok(names.into_iter().filter_map(|name| pod_of(&name)))
    }

    /// Removes links into log directories that are gone. Where only the file is missing, it is being rotated.
    pub(super) fn remove_dangling_links(&self) -> Result<(), FileError> {
        let Some(links) = &self.settings.container_logs else { return Ok(()) };
        for name in names_in(links)? {
            let link = links.join(&name);
            let target = fs::read_link(&link).ok().filter(|log| self.is_lost(log));
            if target.is_some() {
                unless_gone(fs::remove_file(&link)).map_err(failed("remove", &link))?;
            }
        }
        Ok(())
    }

    /// Whether a log of ours lies in a pod's directory that is not there.
    fn is_lost(&self, log: &Path) -> bool {
        let of_pod = log.ancestors().nth(2);
        let ours = |directory: &&Path| directory.parent() == Some(&self.settings.pod_logs);
        of_pod.filter(ours).is_some_and(|directory| !directory.exists())
    }
}

/// Removes a log and what was rotated away from it. A container that has the directories above it mounted may have put a link in
/// their place, which must not lead to the removal of other files.
fn remove_logs(root: &Path, below: &Path, log: &str) -> io::Result<()> {
    let directory = RootDirectory::open(root)?.open_directory(below)?;
    let mut removed = Ok(());
    directory.each_name(&mut |name| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(log));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
            removed = unless_gone(directory.remove_file(Path::new(name)));
        }
        removed.is_ok()
    })?;
    removed
}
