//! What the runtime tells: the file systems of images and writable layers, what each layer holds, and its own process.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oarsman_clock::Clock;
use oarsman_core::disk_usage::DiskUsage;
use oarsman_core::stats::MeasuredPod;
use oarsman_core::time::Mono;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::FilesystemUsage;
use oarsman_sync::Guarded;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::runtime_endpoint::RuntimeEndpoint;

/// The runtime counts its layers every ten seconds; it is not asked more often.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// The process of the runtime is looked for as often.
const PROCESS_KEPT_FOR: Duration = Duration::from_secs(60);
/// The longest a request waits for the runtime. What it does not tell is left out.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What the runtime told last.
pub(super) struct RuntimeDisks {
    runtime: Arc<dyn Runtime>,
    socket: Option<PathBuf>,
    clock: Arc<dyn Clock>,
    kept: Guarded<KeptAnswers>,
}

#[derive(Default)]
struct KeptAnswers {
    file_systems: Option<(Mono, RuntimeFileSystems)>,
    layers: Option<(Mono, Arc<BTreeMap<String, DiskUsage>>)>,
    process: Option<(Mono, Option<u32>)>,
}

/// Directories on the file systems of the runtime, and what is used for its purpose.
#[derive(Clone, Debug, Default)]
pub(super) struct RuntimeFileSystems {
    pub(super) images: Option<(PathBuf, DiskUsage)>,
    pub(super) containers: Option<(PathBuf, DiskUsage)>,
}

impl RuntimeDisks {
    pub(super) fn new(
        runtime: Arc<dyn Runtime>,
        endpoint: &RuntimeEndpoint,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let socket = endpoint.socket().map(Path::to_owned);
        Self { runtime, socket, clock, kept: Guarded::default() }
    }

    pub(super) async fn file_systems(&self) -> RuntimeFileSystems {
        let now = self.clock.mono();
        let kept = self.kept.lock().file_systems.clone();
        if let Some((at, found)) = kept
            && now.since(at) < KEPT_FOR
        {
            return found;
        }
        let asked = answer("ImageFsInfo", self.runtime.image_fs_info()).await;
        // A runtime that hangs delays one request in a while, not each.
        let found = asked.map_or_else(RuntimeFileSystems::default, |answer| RuntimeFileSystems {
            images: answer.image_filesystems.first().and_then(place),
            containers: answer.container_filesystems.first().and_then(place),
        });
        self.kept.lock().file_systems = Some((self.clock.mono(), found.clone()));
        found
    }

    /// Adds what the writable layer of each container holds.
    pub(super) async fn add_writable_layers(&self, pods: &mut [MeasuredPod]) {
        let layers = self.layers().await;
        for container in pods.iter_mut().flat_map(|pod| &mut pod.containers) {
            container.writable_layer = layers.get(&container.id).copied();
        }
    }

    async fn layers(&self) -> Arc<BTreeMap<String, DiskUsage>> {
        let now = self.clock.mono();
        let kept = self.kept.lock().layers.clone();
        if let Some((at, found)) = kept
            && now.since(at) < KEPT_FOR
        {
            return found;
        }
        let asked = answer("ListContainerStats", self.runtime.list_container_stats(None)).await;
        let stats = asked.unwrap_or_default();
        let layer = |stats: oarsman_cri_types::v1::ContainerStats| {
            Some((stats.attributes?.id, usage(stats.writable_layer.as_ref()?)))
        };
        let found: Arc<BTreeMap<_, _>> = Arc::new(stats.into_iter().filter_map(layer).collect());
        self.kept.lock().layers = Some((self.clock.mono(), Arc::clone(&found)));
        found
    }

    /// The process that listens at the runtime's socket: the kernel tells it to each client. The embedded runtime is a part of the agent.
    pub(super) async fn runtime_process(&self) -> Option<u32> {
        let now = self.clock.mono();
        let kept = self.kept.lock().process;
        if let Some((at, found)) = kept
            && now.since(at) < PROCESS_KEPT_FOR
        {
            return found;
        }
        let connect = UnixStream::connect(self.socket.as_ref()?);
        let connection = timeout(TIMEOUT, connect).await.ok().and_then(Result::ok);
        let process = connection.and_then(|it| u32::try_from(it.peer_cred().ok()?.pid()?).ok());
        self.kept.lock().process = Some((now, process));
        process
    }
}

/// An answer that comes in time.
async fn answer<T>(
    call: &'static str,
    asked: impl Future<Output = oarsman_cri::Result<T>>,
) -> Option<T> {
    match timeout(TIMEOUT, asked).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(call, %error, "runtime did not tell what its disks hold");
            None
        }
        Err(_) => {
            tracing::debug!(call, "runtime did not tell in time what its disks hold");
            None
        }
    }
}

fn place(found: &FilesystemUsage) -> Option<(PathBuf, DiskUsage)> {
    Some((PathBuf::from(&found.fs_id.as_ref()?.mountpoint), usage(found)))
}

fn usage(found: &FilesystemUsage) -> DiskUsage {
    DiskUsage {
        bytes: found.used_bytes.as_ref().map_or(0, |it| it.value),
        inodes: found.inodes_used.as_ref().map_or(0, |it| it.value),
    }
}
