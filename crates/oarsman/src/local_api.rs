//! The agent's local socket: HTTP with JSON for root on this machine, by which commands ask a running agent.
//!
//! `curl --unix-socket /var/lib/oarsman/oarsman.sock http://localhost/v1/report` works as well.

mod client;
mod server;
mod stop;
mod stopped_pods;
mod stream_client;

use serde::{Deserialize, Serialize};

pub(crate) use client::{ClientError, LocalClient};
pub(crate) use server::{LateStats, LocalApi, LocalServer, serve};
pub(crate) use stopped_pods::{StoppedPods, without_stopped_pods};
pub(crate) use stream_client::CommandRequest;

/// The name of the socket in an agent's root directory.
const SOCKET: &str = "oarsman.sock";
/// The paths that are served.
const REPORT: &str = "/v1/report";
const STOP: &str = "/v1/stop";
const STATS: &str = "/v1/stats";
/// Below it are the kubelet server's paths of exec, attach and port-forward, too.
const VERSION: &str = "/v1";

/// The body of a request to stop pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopRequest {
    #[serde(default)]
    pub(crate) pods: Vec<PodName>,
    /// All pods, and the agent with them.
    #[serde(default)]
    pub(crate) all: bool,
}

/// A pod by its whole name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PodName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The body of a response that is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ErrorBody {
    error: String,
}
