//! The calls of CRI.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use oarsman_clock::Clock;
use oarsman_cri::{
    CriError, ErrorCode, EventStream, InfoTarget, Result, Runtime, StreamingEndpoint,
};
use oarsman_cri_types::v1 as cri;
use oarsman_pod_network::HostChange;
use oarsman_seam::async_trait;
use tokio::sync::broadcast::error::RecvError;

use crate::error::{EmbeddedRuntimeError, Outcome};
use crate::inner::{RuntimeInner, to_the_end};
use crate::settings::EmbeddedRuntimeSettings;

/// The first kernel that mounts the layers of images for other users: one that is older can have user namespaces, but no root file systems in them.
const USER_NAMESPACES: (u32, u32) = (5, 19);

/// The embedded runtime. What it runs goes on when it is dropped, and is found again by the next one of the same directory.
#[derive(Clone, Debug)]
pub struct EmbeddedRuntime {
    inner: Arc<RuntimeInner>,
}

impl EmbeddedRuntime {
    /// Opens the directory of the settings, finds what runs, and removes what crashes have left. One process at a time.
    ///
    /// # Errors
    /// When the directory, control groups or the network cannot be used.
    pub async fn open(
        settings: EmbeddedRuntimeSettings,
        clock: Arc<dyn Clock>,
    ) -> std::result::Result<Self, EmbeddedRuntimeError> {
        Ok(Self { inner: crate::open::open(settings, clock).await? })
    }

    /// Removes what sandboxes share on the node, such as the bridge; for an agent that ends for good.
    ///
    /// # Errors
    /// When there are sandboxes, or the kernel refuses.
    pub async fn remove_network(&self) -> std::result::Result<(), EmbeddedRuntimeError> {
        self.inner.on_network("remove", |inner| Ok(inner.network.remove_all()?)).await?;
        Ok(self.inner.cni.remove_directory().await?)
    }

    /// The settings of the host that were changed because pods cannot do without, since this was opened. They stay as they are now.
    pub fn host_changes(&self) -> Vec<HostChange> {
        self.inner.host_changes.lock().clone()
    }

    /// The images of this node.
    pub fn images(&self) -> &oarsman_image_store::ImageStore {
        &self.inner.images
    }

    fn inner(&self) -> Arc<RuntimeInner> {
        Arc::clone(&self.inner)
    }
}

/// Makes the error of a call of an outcome.
fn of<T>(call: &'static str, object: &str, outcome: Outcome<T>) -> Result<T> {
    outcome.map_err(|error| error.of_call(call, object))
}

#[async_trait]
impl Runtime for EmbeddedRuntime {
    async fn version(&self) -> Result<cri::VersionResponse> {
        Ok(cri::VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: "oarsman".to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            runtime_api_version: "v1".to_owned(),
        })
    }

    async fn status(&self) -> Result<cri::StatusResponse> {
        let condition = |name: &str| cri::RuntimeCondition {
            r#type: name.to_owned(),
            status: true,
            ..cri::RuntimeCondition::default()
        };
        let mut conditions = vec![condition("RuntimeReady")];
        conditions.extend(self.inner().network_conditions().await);
        let features = cri::RuntimeHandlerFeatures {
            recursive_read_only_mounts: self.inner.kernel >= (5, 12),
            user_namespaces: self.inner.kernel >= USER_NAMESPACES,
        };
        Ok(cri::StatusResponse {
            status: Some(cri::RuntimeStatus { conditions }),
            runtime_handlers: vec![cri::RuntimeHandler {
                name: String::new(),
                features: Some(features),
            }],
            features: Some(cri::RuntimeFeatures {
                supplemental_groups_policy: true,
                ..cri::RuntimeFeatures::default()
            }),
            ..cri::StatusResponse::default()
        })
    }

    async fn runtime_config(&self) -> Result<cri::RuntimeConfigResponse> {
        let cgroup_driver = cri::CgroupDriver::Cgroupfs.into();
        let linux = Some(cri::LinuxRuntimeConfiguration { cgroup_driver });
        Ok(cri::RuntimeConfigResponse { linux })
    }

    /// The network's subnets are settings of ours.
    async fn update_runtime_config(&self, _config: cri::RuntimeConfig) -> Result<()> {
        Ok(())
    }

    async fn info(&self, about: InfoTarget<'_>) -> Result<BTreeMap<String, String>> {
        of("Info", "", self.inner().info(about).await)
    }

    async fn run_pod_sandbox(&self, request: cri::RunPodSandboxRequest) -> Result<String> {
        let metadata = request.config.as_ref().and_then(|config| config.metadata.clone());
        let metadata = metadata.unwrap_or_default();
        let pod = format!("{}/{}", metadata.namespace, metadata.name);
        of("RunPodSandbox", &pod, to_the_end(self.inner().run_sandbox(request)).await)
    }

    async fn stop_pod_sandbox(&self, id: &str) -> Result<()> {
        let done = to_the_end(self.inner().stop_sandbox(id.to_owned())).await;
        of("StopPodSandbox", id, done)
    }

    async fn remove_pod_sandbox(&self, id: &str) -> Result<()> {
        let done = to_the_end(self.inner().remove_sandbox(id.to_owned())).await;
        of("RemovePodSandbox", id, done)
    }

    async fn pod_sandbox_status(&self, id: &str) -> Result<cri::PodSandboxStatus> {
        of("PodSandboxStatus", id, self.inner.sandbox_status(id))
    }

    async fn list_pod_sandboxes(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> Result<Vec<cri::PodSandbox>> {
        Ok(self.inner.list_sandboxes(&filter.unwrap_or_default()))
    }

    /// The agent sets the limits of the pod's control group itself.
    async fn update_pod_sandbox_resources(
        &self,
        request: cri::UpdatePodSandboxResourcesRequest,
    ) -> Result<()> {
        let id = &request.pod_sandbox_id;
        of("UpdatePodSandboxResources", id, self.inner.sandbox(id).map(drop))
    }

    async fn create_container(&self, request: cri::CreateContainerRequest) -> Result<String> {
        let sandbox = request.pod_sandbox_id.clone();
        let done = to_the_end(self.inner().create_container(request)).await;
        of("CreateContainer", &sandbox, done)
    }

    async fn start_container(&self, id: &str) -> Result<()> {
        let done = to_the_end(self.inner().start_container(id.to_owned())).await;
        of("StartContainer", id, done)
    }

    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()> {
        of("StopContainer", id, self.inner().stop_container(id.to_owned(), grace).await)
    }

    async fn remove_container(&self, id: &str) -> Result<()> {
        let done = to_the_end(self.inner().remove_container(id.to_owned())).await;
        of("RemoveContainer", id, done)
    }

    async fn list_containers(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> Result<Vec<cri::Container>> {
        Ok(self.inner.list_containers(&filter.unwrap_or_default()))
    }

    async fn container_status(&self, id: &str) -> Result<cri::ContainerStatus> {
        of("ContainerStatus", id, self.inner.container_status(id))
    }

    async fn update_container_resources(
        &self,
        request: cri::UpdateContainerResourcesRequest,
    ) -> Result<()> {
        let id = request.container_id.clone();
        let done = to_the_end(self.inner().update_resources(request)).await;
        of("UpdateContainerResources", &id, done)
    }

    async fn reopen_container_log(&self, id: &str) -> Result<()> {
        of("ReopenContainerLog", id, self.inner().reopen_log(id.to_owned()).await)
    }

    async fn exec_sync(&self, request: cri::ExecSyncRequest) -> Result<cri::ExecSyncResponse> {
        let (id, seconds) = (request.container_id.clone(), request.timeout);
        let done = self.inner().exec_sync(request).await;
        of("ExecSync", &id, done)?.ok_or_else(|| {
            let message = format!("the command was killed after its {seconds} seconds");
            CriError::new("ExecSync", ErrorCode::DeadlineExceeded, message).on(id)
        })
    }

    async fn exec(&self, request: cri::ExecRequest) -> Result<StreamingEndpoint> {
        let id = request.container_id.clone();
        of("Exec", &id, self.inner().exec(request).await)
    }

    async fn attach(&self, request: cri::AttachRequest) -> Result<StreamingEndpoint> {
        let id = request.container_id.clone();
        of("Attach", &id, self.inner.attach(request))
    }

    async fn port_forward(&self, request: cri::PortForwardRequest) -> Result<StreamingEndpoint> {
        let id = request.pod_sandbox_id.clone();
        of("PortForward", &id, self.inner.port_forward(request))
    }

    /// A subscriber that is too far behind is told by the end of its stream.
    async fn container_events(&self) -> Result<EventStream> {
        let events = futures::stream::unfold(self.inner.events.subscribe(), |mut events| async {
            match events.recv().await {
                Ok(event) => Some((Ok(event), events)),
                Err(RecvError::Closed | RecvError::Lagged(_)) => None,
            }
        });
        Ok(events.boxed())
    }

    async fn container_stats(&self, id: &str) -> Result<cri::ContainerStats> {
        of("ContainerStats", id, self.inner.container_stats(id).await)
    }

    async fn list_container_stats(
        &self,
        filter: Option<cri::ContainerStatsFilter>,
    ) -> Result<Vec<cri::ContainerStats>> {
        let filter = filter.unwrap_or_default();
        of("ListContainerStats", "", self.inner.list_container_stats(&filter).await)
    }

    async fn pod_sandbox_stats(&self, id: &str) -> Result<cri::PodSandboxStats> {
        of("PodSandboxStats", id, self.inner.sandbox_stats(id).await)
    }

    async fn list_pod_sandbox_stats(
        &self,
        filter: Option<cri::PodSandboxStatsFilter>,
    ) -> Result<Vec<cri::PodSandboxStats>> {
        let listed = self.inner.list_sandbox_stats(filter.unwrap_or_default()).await;
        of("ListPodSandboxStats", "", listed)
    }

    async fn list_images(&self, filter: Option<cri::ImageFilter>) -> Result<Vec<cri::Image>> {
        of("ListImages", "", self.inner.list_images(filter).await)
    }

    async fn image_status(&self, image: cri::ImageSpec) -> Result<Option<cri::Image>> {
        let name = image.image;
        of("ImageStatus", &name, self.inner.image_status(name.clone()).await)
    }

    async fn pull_image(&self, request: cri::PullImageRequest) -> Result<String> {
        let name = request.image.clone().unwrap_or_default().image;
        of("PullImage", &name, self.inner.pull_image(request).await)
    }

    async fn remove_image(&self, image: cri::ImageSpec) -> Result<()> {
        let name = image.image;
        of("RemoveImage", &name, self.inner.remove_image(name.clone()).await)
    }

    async fn image_fs_info(&self) -> Result<cri::ImageFsInfoResponse> {
        of("ImageFsInfo", "", self.inner.image_fs_info().await)
    }
}
