//! The two messages as wholes, and the node that tests are on.

mod container;
mod sandbox;

use std::path::Path;

use super::{Place, Settings};
use crate::node::NodeFacts;
use crate::quantity::Quantity;
use crate::resources::names::{CgroupDriver, CgroupNames};

/// A node, to be edited before a place is made of it.
pub(super) struct TestNode {
    pub(super) facts: NodeFacts,
    pub(super) settings: Settings,
}

/// A node with one address, the usual cluster domain and a gibibyte of memory.
pub(super) fn node() -> TestNode {
    let mut settings = Settings::of_memory(1 << 30);
    settings.cgroups = CgroupNames::new(CgroupDriver::Cgroupfs, "/");
    settings.dns.servers = vec!["10.96.0.10".to_owned()];
    settings.dns.domain = "cluster.local".to_owned();
    settings.dns.resolv_conf = Some("nameserver 192.0.2.53\n".to_owned());
    settings.allocatable = [("cpu", "4"), ("memory", "1Gi"), ("ephemeral-storage", "10Gi")]
        .map(|(name, amount)| (name.to_owned(), Quantity::parse(amount).unwrap()))
        .into();
    let facts = NodeFacts { host_ips: vec!["192.0.2.1".to_owned()], ..NodeFacts::default() };
    TestNode { facts, settings }
}

impl TestNode {
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            root: "/var/lib/kubelet",
            pod_logs: Path::new("/var/log/pods"),
            facts: &self.facts,
            settings: &self.settings,
        }
    }
}
