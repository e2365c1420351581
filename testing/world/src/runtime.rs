//! A fake container runtime in memory: containers are scripts that run in virtual time.
//!
//! It does what real containerd was seen to do, and passes the same contract suite. It has no faults of its own; an agent calls it through
//! [`connect`], over a link that has.

mod calls;
mod client;
mod containers;
mod events;
mod exec;
mod execution;
mod images;
mod inspect;
mod lists;
mod logs;
mod names;
mod outage;
mod program;
mod sandboxes;
mod state;
mod stats;
mod stop;
mod user_namespaces;

use std::sync::{Arc, Mutex, MutexGuard};

use oarsman_cri::{CriError, ErrorCode, Result};
use oarsman_cri_types::v1::PullImageRequest;
use oarsman_sync::ordered_watch as watch;
use tokio::runtime::Handle;

pub use client::connect;
pub use images::{ImageAccess, ImageSource};

use crate::clock::WorldClock;
use crate::files::FakeFiles;
use crate::lock;
use crate::rng::Rng;
use crate::trace::Trace;
use state::FakeRuntimeState;

#[cfg(test)]
mod tests;

/// The fake runtime; clones are the same runtime.
#[derive(Clone)]
pub struct FakeRuntime(Arc<RuntimeInner>);

struct RuntimeInner {
    /// Never held across an await.
    state: Mutex<FakeRuntimeState>,
    /// Counts outages.
    outages: watch::Sender<u64>,
    /// The executor of containers: they do not end with the agent that started them.
    executor: Handle,
}

impl FakeRuntime {
    /// A runtime without containers and images, whose containers run on the current tokio runtime.
    pub fn new(clock: WorldClock, files: FakeFiles, trace: Trace, rng: Rng) -> Self {
        let state = Mutex::new(FakeRuntimeState::new(clock, files, trace, rng));
        let (outages, _) = watch::channel(0);
        Self(Arc::new(RuntimeInner { state, outages, executor: Handle::current() }))
    }

    /// Adds an image to the node.
    pub fn preload(&self, image: ImageSource) {
        self.state().images.preload(image);
    }

    /// How many bytes the images on the node take.
    pub fn image_bytes(&self) -> u64 {
        self.state().images.size()
    }

    /// The requests of all pulls so far.
    pub fn pull_requests(&self) -> Vec<PullImageRequest> {
        self.state().images.requests.clone()
    }

    /// The names of the images on the node.
    pub fn image_names(&self) -> Vec<String> {
        self.state().images.list().into_iter().flat_map(|image| image.repo_tags).collect()
    }

    /// Adds an image to a registry, in place of the one of its name.
    pub fn publish(&self, image: ImageSource, access: ImageAccess) {
        self.state().images.publish(image, access);
    }

    /// Ends a sandbox's own process, as a fault would: it is not ready any more, and its containers
    /// run on.
    pub fn break_sandbox(&self, id: &str) {
        self.state().break_sandbox(id);
    }

    /// Whether a process listens at that address of a pod.
    pub fn listens(&self, ip: &str, port: u16) -> bool {
        self.state().listens(ip, port)
    }

    /// The state, also while the runtime is away: containers run on without it.
    fn state(&self) -> MutexGuard<'_, FakeRuntimeState> {
        lock(&self.0.state)
    }

    /// The state for a call, which needs the runtime to be there.
    fn serve(&self, call: &'static str) -> Result<MutexGuard<'_, FakeRuntimeState>> {
        let state = self.state();
        if state.is_away() {
            return Err(CriError::new(call, ErrorCode::Unavailable, "the runtime is not there"));
        }
        Ok(state)
    }
}
