//! The machine's own ground: the directories, cgroups, volumes, logs and records of the pods that run on it.
//!
//! All of it blocks, so it is done on threads for that. A call that hangs, as on a mount that is gone, is given up by the
//! bound around the seam; it costs its thread until the kernel lets go, and no other pod anything.

mod cgroups;
mod credentials;
mod directories;
mod last_words;
mod logs;
mod providers;
mod records;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_clock::Clock;
use oarsman_core::config::{Payloads, PodPaths};
use oarsman_core::ids::{ContainerId, FullName, PodUid};
use oarsman_core::image::providers::Provider;
use oarsman_core::pod::PodExt;
use oarsman_core::resources::NodeResources;
use oarsman_core::resources::names::CgroupNames;
use oarsman_core::view::ContainerView;

use crate::seams::{Disk, DiskError, Furniture, Holding};

use crate::files::{failed, is_plain_name};
use cgroups::Groups;

/// Where everything lies.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The root directory of the agent.
    pub root: PathBuf,
    /// The directory of pods' logs.
    pub pod_logs: PathBuf,
    /// Where logs are linked by their containers' ids, if anywhere.
    pub container_logs: Option<PathBuf>,
    /// How pods' cgroups are called.
    pub cgroups: CgroupNames,
    /// What the values of cgroups depend on.
    pub resources: NodeResources,
    /// Where the programs lie that know credentials of registries.
    pub providers: PathBuf,
    /// What the versions of volumes are named after.
    pub clock: Arc<dyn Clock>,
    /// Whether the agent is a guest, which leaves not even an empty cgroup behind.
    pub is_guest: bool,
}

/// The machine as it is.
#[derive(Clone, Debug)]
pub struct Ground(Arc<Plot>);

#[derive(Debug)]
struct Plot {
    settings: Settings,
    groups: Groups,
}

impl Ground {
    /// Takes possession of the root directory, which is made where there is none.
    ///
    /// # Errors
    /// When directories cannot be made, or the machine's cgroups cannot be read.
    pub fn open(settings: Settings) -> Result<Self, DiskError> {
        let groups = Groups::open(&settings)?;
        let plot = Plot { settings, groups };
        plot.lay_out()?;
        Ok(Self(Arc::new(plot)))
    }

    async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Plot) -> Result<T, DiskError> + Send + 'static,
    ) -> Result<T, DiskError> {
        let plot = Arc::clone(&self.0);
        let root = plot.settings.root.clone();
        let done = tokio::task::spawn_blocking(move || work(&plot)).await;
        done.unwrap_or_else(|error| Err(failed("work in", &root)(error)))
    }
}

impl Plot {
    /// The paths of a pod. A UID may be given in a manifest: one that is no plain name could lead anywhere.
    fn paths(&self, uid: &PodUid) -> Result<PodPaths, DiskError> {
        if !is_plain_name(uid.as_str()) {
            let why = "its uid is not a plain name: set metadata.uid to letters, digits and dashes";
            return Err(failed("use the uid of", std::path::Path::new(uid.as_str()))(why));
        }
        Ok(PodPaths::new(&self.settings.root, uid))
    }
}

#[async_trait]
impl Disk for Ground {
    async fn prepare(&self, pod: &Pod, payloads: &Payloads) -> Result<(), DiskError> {
        let (pod, payloads) = (pod.clone(), payloads.clone());
        self.on_a_thread(move |plot| {
            let paths = plot.paths(&pod.uid())?;
            plot.groups.make(&pod)?;
            plot.make_directories(&pod, &paths)?;
            let now = plot.settings.clock.wall();
            let volumes = oarsman_volumes::set_up(&pod, &paths, &payloads, now);
            volumes.map_err(failed("set up the volumes in", &paths.volumes()))
        })
        .await
    }

    async fn has_cgroup(&self, pod: &PodUid) -> Result<bool, DiskError> {
        let uid = pod.clone();
        self.on_a_thread(move |plot| Ok(plot.groups.has(&uid))).await
    }

    async fn release_volumes(&self, pod: &PodUid) -> Result<(), DiskError> {
        let uid = pod.clone();
        self.on_a_thread(move |plot| {
            let paths = plot.paths(&uid)?;
            let torn_down = oarsman_volumes::tear_down(&paths);
            torn_down.map_err(failed("give back the volumes in", &paths.volumes()))
        })
        .await
    }

    async fn release_cgroup(&self, pod: &PodUid) -> Result<(), DiskError> {
        let uid = pod.clone();
        self.on_a_thread(move |plot| plot.groups.destroy(&uid)).await
    }

    async fn remove(&self, pod: &PodUid) -> Result<(), DiskError> {
        let uid = pod.clone();
        self.on_a_thread(move |plot| {
            let paths = plot.paths(&uid)?;
            // Volumes hold what is mounted: their directory goes before the one around it.
            oarsman_volumes::tear_down(&paths).map_err(failed("empty", &paths.volumes()))?;
            plot.groups.destroy(&uid)?;
            directories::remove_directory(&paths)?;
            plot.remove_log_directory(&uid)?;
            plot.forget(&uid)
        })
        .await
    }

    async fn pods(&self) -> Result<BTreeMap<PodUid, Holding>, DiskError> {
        self.on_a_thread(|plot| {
            plot.sweep_links()?;
            let logs = plot.with_logs()?.map(|uid| (uid, Holding::default()));
            let own = plot.with_directories()?.chain(plot.with_records()?);
            let own = own.map(|uid| (uid, Holding { own: true, cgroup: false }));
            let groups = plot.groups.pods()?.into_iter();
            let groups = groups.map(|uid| (uid, Holding { own: true, cgroup: true }));
            // The last word on a pod is the one that says most.
            Ok(logs.chain(own).chain(groups).collect())
        })
        .await
    }

    async fn remember(
        &self,
        pod: &PodUid,
        status: &PodStatus,
        lasting: bool,
    ) -> Result<(), DiskError> {
        let (uid, status) = (pod.clone(), status.clone());
        self.on_a_thread(move |plot| plot.record(&uid, &status, lasting)).await
    }

    async fn recall(&self, pod: &PodUid) -> Result<Option<PodStatus>, DiskError> {
        let uid = pod.clone();
        self.on_a_thread(move |plot| plot.read_record(&uid)).await
    }

    async fn last_words(
        &self,
        pod: &PodUid,
        container: &ContainerView,
    ) -> Result<String, DiskError> {
        let (uid, container) = (pod.clone(), container.clone());
        self.on_a_thread(move |plot| plot.read_last_words(&uid, &container)).await
    }

    async fn credentials(&self) -> Result<Option<String>, DiskError> {
        self.on_a_thread(Plot::read_credentials).await
    }

    async fn ask_provider(
        &self,
        provider: &Provider,
        question: &str,
    ) -> Result<Vec<u8>, DiskError> {
        providers::ask(&self.0.settings.providers, provider, question).await
    }

    async fn furnish(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        hosts: Option<&str>,
    ) -> Result<Furniture, DiskError> {
        let (pod, container) = (pod.clone(), container.to_owned());
        let hosts = hosts.map(str::to_owned);
        self.on_a_thread(move |plot| {
            plot.make_log_directory(&pod, Some(&container))?;
            let paths = plot.paths(&pod.uid())?;
            let message_file = directories::make_message_file(&paths, &container, restart_count)?;
            let hosts =
                hosts.map(|content| directories::write_hosts(&paths, &content)).transpose()?;
            Ok(Furniture { message_file, hosts })
        })
        .await
    }

    async fn log_names(&self, pod: &Pod, container: &str) -> Result<Vec<String>, DiskError> {
        let (pod, container) = (pod.clone(), container.to_owned());
        self.on_a_thread(move |plot| plot.names_of_logs(&pod, &container)).await
    }

    async fn link_log(
        &self,
        pod: &Pod,
        container: &str,
        restart_count: u32,
        id: &ContainerId,
    ) -> Result<(), DiskError> {
        let (pod, container, id) = (pod.clone(), container.to_owned(), id.clone());
        self.on_a_thread(move |plot| plot.link_log(&pod, &container, restart_count, &id)).await
    }

    async fn discard_log(
        &self,
        pod: &PodUid,
        name: &FullName,
        container: &ContainerView,
    ) -> Result<(), DiskError> {
        let (uid, name, container) = (pod.clone(), name.clone(), container.clone());
        self.on_a_thread(move |plot| plot.discard_log(&uid, &name, &container)).await
    }
}
