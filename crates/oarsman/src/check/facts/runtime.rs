//! Facts about the container runtime: its socket, whether it answers, and what it reports.

use std::time::Duration;

use oarsman_core::resources::names::CgroupDriver;
use oarsman_cri::{CriError, Deadlines, RemoteRuntime, Runtime as _};
use oarsman_cri_types::v1::StatusResponse;

use super::embedded_runtime::EmbeddedRuntimeFacts;
use crate::assembly::reported_cgroup_driver;
use crate::check::requirements::Requirements;
use crate::runtime_endpoint::{NoRuntime, RuntimeEndpoint};

/// A runtime that works answers in far less.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The result of the search for a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeSearch {
    /// It is in this program.
    Embedded(EmbeddedRuntimeFacts),
    /// No process listens at any of the default sockets of its kind.
    Nowhere(Vec<String>),
    /// No process listens at the configured socket.
    Unreachable {
        endpoint: String,
        why: String,
    },
    /// A process listens, but does not answer as a runtime would.
    Failed {
        endpoint: String,
        error: CriError,
    },
    Answers(RuntimeAnswer),
}

/// What the runtime reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeAnswer {
    pub(crate) endpoint: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) conditions: Vec<ConditionFact>,
    /// None if it does not report it.
    pub(crate) cgroup_driver: Option<CgroupDriver>,
    /// Whether this machine was booted with systemd.
    pub(crate) has_systemd: bool,
}

/// One condition of the runtime's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionFact {
    pub(crate) name: String,
    pub(crate) holds: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl RuntimeSearch {
    /// Queries the runtime that was named.
    pub(super) async fn ask(requirements: &Requirements) -> Self {
        let endpoint = match requirements.runtime.find() {
            Ok(RuntimeEndpoint::Embedded) => {
                return Self::Embedded(EmbeddedRuntimeFacts::read(&requirements.root));
            }
            Ok(RuntimeEndpoint::Socket(address)) => address,
            Err(NoRuntime::OfKind(kind)) => {
                let looked = kind.default_sockets().iter().map(|socket| (*socket).to_owned());
                return Self::Nowhere(looked.collect());
            }
            Err(NoRuntime::Silent { address, source }) => {
                return Self::Unreachable { endpoint: address, why: source.to_string() };
            }
        };
        match RemoteRuntime::new(&endpoint, None, Deadlines { request: MAX_WAIT }) {
            Err(error) => Self::Unreachable { endpoint, why: error.to_string() },
            Ok(client) => match answer(&client, &endpoint).await {
                Ok(answer) => Self::Answers(answer),
                Err(error) => Self::Failed { endpoint, error },
            },
        }
    }
}

async fn answer(client: &RemoteRuntime, endpoint: &str) -> Result<RuntimeAnswer, CriError> {
    let version = client.version().await?;
    let status = client.status().await?;
    Ok(RuntimeAnswer {
        endpoint: endpoint.to_owned(),
        name: version.runtime_name,
        version: version.runtime_version,
        conditions: conditions(status),
        cgroup_driver: reported_cgroup_driver(client).await?,
        has_systemd: std::path::Path::new("/run/systemd/system").is_dir(),
    })
}

fn conditions(status: StatusResponse) -> Vec<ConditionFact> {
    let all = status.status.unwrap_or_default().conditions.into_iter();
    all.map(|condition| ConditionFact {
        name: condition.r#type,
        holds: condition.status,
        reason: condition.reason,
        message: condition.message,
    })
    .collect()
}
