//! A CRI proxy: every call to containerd is recorded, and may be held, delayed or failed.
//!
//! An agent is given the proxy's socket in place of containerd's. Its calls are then known one by one, and one pod's calls can be made to hang
//! while all others go on.

mod calls;
mod forward;
mod rules;
mod subject;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use oarsman_cri::{Deadlines, RemoteRuntime, Runtime};
use oarsman_cri_types::v1::{ContainerFilter, PodSandboxFilter};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

pub use calls::{PodRef, RecordedCall};
use forward::ForwardingRuntime;
pub use rules::{CallFilter, ProxyRule, RuleAction};

/// A CRI server that calls another runtime. It ends when it is dropped, and every call under way with it.
pub struct CriProxy {
    socket: PathBuf,
    forward: Arc<ForwardingRuntime>,
    serving: JoinHandle<()>,
}

impl CriProxy {
    /// Listens on that socket and forwards to the runtime. The pods that are there are known to it.
    ///
    /// # Errors
    /// When it cannot listen there, or the runtime does not list its pods.
    pub async fn start(runtime: Arc<dyn Runtime>, socket: &Path) -> Result<Self> {
        let forward = Arc::new(ForwardingRuntime::new(runtime));
        forward.list_pod_sandboxes(None::<PodSandboxFilter>).await?;
        forward.list_containers(None::<ContainerFilter>).await?;
        forward.journal().clear();
        let listener = UnixListener::bind(socket)
            .with_context(|| format!("cannot listen on {}", socket.display()))?;
        let served: Arc<dyn Runtime> = Arc::<ForwardingRuntime>::clone(&forward);
        let serving = tokio::spawn(async move {
            // It fails only when the listener does, and then every caller notices.
            oarsman_cri::serve(served, listener, std::future::pending()).await.ok();
        });
        Ok(Self { socket: socket.to_owned(), forward, serving })
    }

    /// The proxy's endpoint, in the form of an agent's flag.
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// A client of it.
    ///
    /// # Errors
    /// Never, as long as the socket has a plain name.
    pub fn client(&self) -> Result<RemoteRuntime> {
        Ok(RemoteRuntime::new(&self.endpoint(), None, Deadlines::default())?)
    }

    /// Every call so far, in the order they came. Those under way have no end yet.
    pub fn calls(&self) -> Vec<RecordedCall> {
        self.forward.journal().all()
    }

    /// The calls that came after there were `count` of them.
    pub fn calls_since(&self, count: usize) -> Vec<RecordedCall> {
        self.calls().into_iter().skip(count).collect()
    }

    /// How many calls came so far.
    pub fn count(&self) -> usize {
        self.forward.journal().len()
    }

    /// Does that to such calls from now on, as long as the rule is kept. Of several rules that fit a
    /// call the oldest decides.
    pub fn add_rule(&self, filter: CallFilter, action: RuleAction) -> ProxyRule {
        self.forward.rules().add(filter, action)
    }
}

impl Drop for CriProxy {
    fn drop(&mut self) {
        self.serving.abort();
        // The path of the socket is free for the next proxy.
        std::fs::remove_file(&self.socket).ok();
    }
}
