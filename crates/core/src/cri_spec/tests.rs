//! The two messages as wholes, and the node that tests are on.

mod container;
mod sandbox;

use std::path::Path;

use super::{NameFiles, NodeContext, NodeSettings};
use crate::node::NodeFacts;
use crate::quantity::Quantity;
use crate::resources::names::{CgroupDriver, CgroupNames};

/// A node, to be edited before a place is made of it.
pub(super) struct CriSpecNode {
    pub(super) facts: NodeFacts,
    pub(super) settings: NodeSettings,
    pub(super) name_files: NameFiles,
}

/// A node with one address, the usual cluster domain and a gibibyte of memory.
pub(super) fn node() -> CriSpecNode {
    let mut settings = NodeSettings::of_memory(1 << 30);
    settings.cgroups = CgroupNames::new(CgroupDriver::Cgroupfs, "/");
    settings.dns.servers = vec!["10.96.0.10".to_owned()];
    settings.dns.domain = "cluster.local".to_owned();
    settings.allocatable = [("cpu", "4"), ("memory", "1Gi"), ("ephemeral-storage", "10Gi")]
        .map(|(name, amount)| (name.to_owned(), Quantity::parse(amount).unwrap()))
        .into();
    let facts = NodeFacts { host_ips: vec!["192.0.2.1".to_owned()], ..NodeFacts::default() };
    let resolv_conf = Some("nameserver 192.0.2.53\n".to_owned());
    let name_files = NameFiles { resolv_conf, ..NameFiles::default() };
    CriSpecNode { facts, settings, name_files }
}

impl CriSpecNode {
    pub(super) fn context(&self) -> NodeContext<'_> {
        NodeContext {
            root: "/var/lib/kubelet",
            pod_logs: Path::new("/var/log/pods"),
            facts: &self.facts,
            settings: &self.settings,
            name_files: &self.name_files,
        }
    }
}
