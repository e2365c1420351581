//! A node for the tests of its parts.

mod addresses;
mod amounts;
mod change;
mod conditions;
mod events;
mod object;
mod reports;
mod runtime;
mod status;

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use oarsman_cri_types::v1::{RuntimeCondition, RuntimeHandler, RuntimeStatus, StatusResponse};

use super::{MachineInfo, NodeProfile, NodeStatusInput, Pressures, RuntimeHealth};
use crate::time::{Mono, Now};

/// A node that can be changed before it is looked at.
#[derive(Clone)]
pub(super) struct NodeFixture {
    pub(super) profile: NodeProfile,
    pub(super) machine: MachineInfo,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) runtime: RuntimeHealth,
    pub(super) pressures: Pressures,
    /// Seconds since the agent began, which was at the beginning of 2027.
    pub(super) at: u64,
}

impl NodeFixture {
    /// A node with nothing wrong.
    pub(super) fn new() -> Self {
        let mut runtime = RuntimeHealth {
            name: "containerd".to_owned(),
            version: "v2.1.4".to_owned(),
            ..RuntimeHealth::default()
        };
        runtime.set_status(
            &status(&[("RuntimeReady", true), ("NetworkReady", true)]),
            Mono::default(),
        );
        Self {
            profile: profile(),
            machine: machine(),
            addresses: vec![ip("192.0.2.1")],
            runtime,
            pressures: Pressures::default(),
            at: 0,
        }
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&NodeStatusInput<'_>) -> T) -> T {
        look(&NodeStatusInput {
            profile: &self.profile,
            machine: &self.machine,
            addresses: &self.addresses,
            runtime: &self.runtime,
            images: &[],
            pressures: self.pressures,
            storage_trouble: None,
            is_shutting_down: false,
            now: moment(self.at),
        })
    }
}

pub(super) fn moment(seconds: u64) -> Now {
    let wall: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let since = Duration::from_secs(seconds);
    Now { wall: wall.checked_add(since).unwrap(), mono: Mono(since) }
}

pub(super) fn status(conditions: &[(&str, bool)]) -> StatusResponse {
    let condition = |(name, status): &(&str, bool)| RuntimeCondition {
        r#type: (*name).to_owned(),
        status: *status,
        reason: if *status { String::new() } else { "Why".to_owned() },
        message: if *status { String::new() } else { "because".to_owned() },
    };
    let handler = |name: &str| RuntimeHandler { name: name.to_owned(), features: None };
    StatusResponse {
        status: Some(RuntimeStatus { conditions: conditions.iter().map(condition).collect() }),
        runtime_handlers: ["runc", ""].map(handler).to_vec(),
        ..StatusResponse::default()
    }
}

pub(super) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn profile() -> NodeProfile {
    NodeProfile {
        name: "n1".to_owned(),
        controller_attaches: true,
        port: 10250,
        version: "v1.36.3".to_owned(),
        max_pods: 110,
        max_images: Some(50),
        counts_storage: true,
        ..NodeProfile::default()
    }
}

fn machine() -> MachineInfo {
    MachineInfo {
        cpus: 2,
        memory: 4 << 30,
        disk: Some(100 << 30),
        machine_id: "m".to_owned(),
        system_uuid: "s".to_owned(),
        boot_id: "b".to_owned(),
        kernel: "6.12".to_owned(),
        os_image: "Debian".to_owned(),
        architecture: "amd64".to_owned(),
        ..MachineInfo::default()
    }
}
