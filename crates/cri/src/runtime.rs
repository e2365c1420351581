//! The seam to whatever runs containers: a remote runtime, the embedded one, or a simulated one.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::BoxStream;
use oarsman_cri_types::v1::{
    AttachRequest, CheckpointContainerRequest, Container, ContainerEventResponse, ContainerFilter,
    ContainerMetadata, ContainerStats, ContainerStatsFilter, ContainerStatus,
    CreateContainerRequest, ExecRequest, ExecSyncRequest, ExecSyncResponse, Image, ImageFilter,
    ImageFsInfoResponse, ImageSpec, MetricDescriptor, PodSandbox, PodSandboxFilter,
    PodSandboxMetadata, PodSandboxMetrics, PodSandboxStats, PodSandboxStatsFilter,
    PodSandboxStatus, PortForwardRequest, PullImageRequest, RunPodSandboxRequest, RuntimeConfig,
    RuntimeConfigResponse, StatusResponse, UpdateContainerResourcesRequest,
    UpdatePodSandboxResourcesRequest, VersionResponse,
};
use oarsman_seam::seam;

use crate::{CriError, Result, StreamingSession};

/// Container events as they happen.
pub type EventStream = BoxStream<'static, Result<ContainerEventResponse>>;

/// How to connect to a process or a port of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamingEndpoint {
    /// At this URL of the runtime, once, and soon: runtimes forget it within a minute.
    Url(String),
    /// In this process, once.
    Session(StreamingSession),
}

/// What [`Runtime::info`] is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfoTarget<'a> {
    /// The runtime as a whole.
    Runtime,
    /// The sandbox with this id.
    Sandbox(&'a str),
    /// The container with this id.
    Container(&'a str),
    /// The image with this reference or id.
    Image(&'a str),
}

/// Runs sandboxes and containers, and keeps images: the calls of CRI v1 that a node agent needs.
///
/// Shapes are uniform. An id and at most one thing more are arguments, anything richer is the CRI
/// request; an answer with one field comes as that field. Ids are the runtime's own, whole.
///
/// Callers may rely on this, whatever the runtime:
/// - A call on something that does not exist fails with [`CriError::is_gone`], except that `stop_*`
///   and `remove_*` then succeed: their purpose is fulfilled. They may be repeated at will.
/// - Every call ends: by its answer, or with [`CriError::is_timeout`] when its deadline has passed.
///   After a timeout the runtime may yet complete the call, so look before you repeat it. Calls
///   without a deadline say so below.
/// - Dropping the future of a call asks the runtime to give it up, but does not wait for that.
/// - Lists come in no particular order.
///
/// Methods with a body are calls that a runtime may lack; they fail with
/// [`CriError::is_unimplemented`], and callers must get along without.
#[seam]
pub trait Runtime: Send + Sync + 'static {
    /// Returns the name and version of the runtime.
    async fn version(&self) -> Result<VersionResponse>;

    /// Returns the runtime's conditions, handlers and features. `info` stays empty.
    async fn status(&self) -> Result<StatusResponse>;

    /// Returns the runtime's requirements on the agent, foremost the cgroup driver. Fixed while it runs.
    async fn runtime_config(&self) -> Result<RuntimeConfigResponse> {
        Err(CriError::unimplemented("RuntimeConfig"))
    }

    /// Tells the runtime the pods' address range. May be repeated.
    async fn update_runtime_config(&self, config: RuntimeConfig) -> Result<()>;

    /// Details for people to read, as JSON by topic; there is no promise about their form. The default is to have none.
    #[seam(direct)]
    async fn info(&self, _about: InfoTarget<'_>) -> Result<BTreeMap<String, String>> {
        Ok(BTreeMap::new())
    }

    /// Makes a sandbox with its network and returns its id; it is ready then. Not idempotent: the
    /// metadata must be new on this node, else the call fails. May take twice as long as others.
    #[seam(object = sandbox_object(&request))]
    async fn run_pod_sandbox(&self, request: RunPodSandboxRequest) -> Result<String>;

    /// Kills what runs in a sandbox and frees its addresses. The sandbox stays, not ready.
    #[seam(object = id)]
    async fn stop_pod_sandbox(&self, id: &str) -> Result<()>;

    /// Removes a sandbox and all its containers, killing what still runs.
    #[seam(object = id)]
    async fn remove_pod_sandbox(&self, id: &str) -> Result<()>;

    /// Describes a sandbox.
    #[seam(object = id)]
    async fn pod_sandbox_status(&self, id: &str) -> Result<PodSandboxStatus>;

    /// Lists sandboxes, ready or not.
    #[seam(call = "ListPodSandbox")]
    async fn list_pod_sandboxes(&self, filter: Option<PodSandboxFilter>)
    -> Result<Vec<PodSandbox>>;

    /// Tells the runtime a pod's new limits, after the agent has changed the pod's cgroup.
    #[seam(object = request.pod_sandbox_id)]
    async fn update_pod_sandbox_resources(
        &self,
        _request: UpdatePodSandboxResourcesRequest,
    ) -> Result<()> {
        Err(CriError::unimplemented("UpdatePodSandboxResources"))
    }

    /// Makes a container, without starting it, and returns its id. Not idempotent: the metadata
    /// must be new in its sandbox, and the image must be on the node.
    #[seam(object = container_object(&request))]
    async fn create_container(&self, request: CreateContainerRequest) -> Result<String>;

    /// Starts a container that was made. Not idempotent: it fails on one that was started before.
    #[seam(object = id)]
    async fn start_container(&self, id: &str) -> Result<()>;

    /// Asks a container to stop, kills it when its grace is over, and returns when it has ended.
    /// Grace counts in whole seconds, rounded up, and prolongs the deadline.
    #[seam(object = id)]
    async fn stop_container(&self, id: &str, grace: Duration) -> Result<()>;

    /// Removes a container, killing it if it runs. Its log file stays.
    #[seam(object = id)]
    async fn remove_container(&self, id: &str) -> Result<()>;

    /// Lists containers in all states.
    async fn list_containers(&self, filter: Option<ContainerFilter>) -> Result<Vec<Container>>;

    /// Describes a container.
    #[seam(object = id)]
    async fn container_status(&self, id: &str) -> Result<ContainerStatus>;

    /// Changes a container's limits: all that is asked for, or nothing. May be repeated.
    #[seam(object = request.container_id)]
    async fn update_container_resources(
        &self,
        request: UpdateContainerResourcesRequest,
    ) -> Result<()>;

    /// Makes the runtime open a container's log file anew, after the old one was moved away. When
    /// it fails, no new file was made.
    #[seam(object = id)]
    async fn reopen_container_log(&self, id: &str) -> Result<()>;

    /// Writes the state of a running container to an archive on the host.
    #[seam(object = request.container_id)]
    async fn checkpoint_container(&self, _request: CheckpointContainerRequest) -> Result<()> {
        Err(CriError::unimplemented("CheckpointContainer"))
    }

    /// Runs a command in a container and waits for its end. A command that fails is an answer with
    /// its exit code; one that outlives its own timeout is a timeout error. Without a timeout the
    /// call has no deadline.
    #[seam(object = request.container_id)]
    async fn exec_sync(&self, request: ExecSyncRequest) -> Result<ExecSyncResponse>;

    /// Prepares to run a command in a container and talk to it.
    #[seam(object = request.container_id)]
    async fn exec(&self, request: ExecRequest) -> Result<StreamingEndpoint>;

    /// Prepares to talk to a container's first process.
    #[seam(object = request.container_id)]
    async fn attach(&self, request: AttachRequest) -> Result<StreamingEndpoint>;

    /// Prepares to talk to ports of a sandbox.
    #[seam(object = request.pod_sandbox_id)]
    async fn port_forward(&self, request: PortForwardRequest) -> Result<StreamingEndpoint>;

    /// Reports what happens to containers from now on. It has no deadline; it ends when the runtime
    /// goes away, and then nothing says what was missed: subscribe again and list.
    #[seam(call = "GetContainerEvents")]
    async fn container_events(&self) -> Result<EventStream> {
        Err(CriError::unimplemented("GetContainerEvents"))
    }

    /// Measures a container.
    #[seam(object = id)]
    async fn container_stats(&self, id: &str) -> Result<ContainerStats>;

    /// Measures the containers that run.
    async fn list_container_stats(
        &self,
        filter: Option<ContainerStatsFilter>,
    ) -> Result<Vec<ContainerStats>>;

    /// Measures a sandbox and its containers.
    #[seam(object = id)]
    async fn pod_sandbox_stats(&self, _id: &str) -> Result<PodSandboxStats> {
        Err(CriError::unimplemented("PodSandboxStats"))
    }

    /// Measures sandboxes and their containers.
    async fn list_pod_sandbox_stats(
        &self,
        _filter: Option<PodSandboxStatsFilter>,
    ) -> Result<Vec<PodSandboxStats>> {
        Err(CriError::unimplemented("ListPodSandboxStats"))
    }

    /// Describes the metrics of [`Runtime::list_pod_sandbox_metrics`]. Fixed while it runs.
    async fn list_metric_descriptors(&self) -> Result<Vec<MetricDescriptor>> {
        Err(CriError::unimplemented("ListMetricDescriptors"))
    }

    /// Takes the metrics of all sandboxes.
    async fn list_pod_sandbox_metrics(&self) -> Result<Vec<PodSandboxMetrics>> {
        Err(CriError::unimplemented("ListPodSandboxMetrics"))
    }

    /// Lists images.
    async fn list_images(&self, filter: Option<ImageFilter>) -> Result<Vec<Image>>;

    /// Looks up an image; none when the node does not have it.
    #[seam(object = image.image)]
    async fn image_status(&self, image: ImageSpec) -> Result<Option<Image>>;

    /// Pulls an image and returns its id on this node, by which every later call names it. It has
    /// no deadline. Pulling what is there already is cheap and succeeds.
    #[seam(object = image_object(&request))]
    async fn pull_image(&self, request: PullImageRequest) -> Result<String>;

    /// Removes an image under all its names. Its space may be freed later.
    #[seam(object = image.image)]
    async fn remove_image(&self, image: ImageSpec) -> Result<()>;

    /// Returns the directories of images and writable layers, and their sizes.
    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse>;
}

/// The pod that a sandbox is made for, which has no id yet.
fn sandbox_object(request: &RunPodSandboxRequest) -> String {
    let metadata = request.config.clone().unwrap_or_default().metadata.unwrap_or_default();
    let PodSandboxMetadata { name, uid, namespace, attempt } = metadata;
    format!("{uid} {namespace}/{name}#{attempt}")
}

/// The container that is made, which has no id yet.
fn container_object(request: &CreateContainerRequest) -> String {
    let metadata = request.config.as_ref().and_then(|config| config.metadata.clone());
    let ContainerMetadata { name, attempt } = metadata.unwrap_or_default();
    format!("{} {name}#{attempt}", request.pod_sandbox_id)
}

fn image_object(request: &PullImageRequest) -> String {
    request.image.as_ref().map(|image| image.image.clone()).unwrap_or_default()
}
