//! The node as admission sees it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeSelector, Taint};

use super::predicates::node_affinity;
use crate::node::amounts::{self, NodeResourceList};
use crate::node::conditions::Pressures;
use crate::node::{MachineInfo, NodeProfile, object};
use crate::resources::amounts::read;

/// Where the labels, taints and resources of the node come from, and how current they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeObjectState {
    /// There is no API server: what the node knows of itself is all there is.
    #[default]
    Standalone,
    /// The API server has not answered yet. It may know labels, taints and resources that we do not.
    Unread,
    /// From the watch of the node's object, which may be behind.
    Watched,
    /// From an answer of the API server that was asked just now.
    Fresh,
}

/// What pods are admitted by: labels, taints and amounts.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the fields' names say what they are")]
pub struct AdmissionNode {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// What it has for pods. A resource that is not named is not counted by this node, except for extended ones and huge pages, of which it
    /// then has none.
    pub allocatable: NodeResourceList,
    /// What it is short of.
    pub pressures: Pressures,
    /// Whether its runtime heeds `supplementalGroupsPolicy`; none while the runtime was not asked.
    pub supplemental_groups_policy: Option<bool>,
    /// Where this comes from.
    pub object_state: NodeObjectState,
}

impl AdmissionNode {
    /// The node by its own facts.
    pub fn of_machine(profile: &NodeProfile, machine: &MachineInfo) -> Self {
        let capacity = amounts::capacity(profile, machine);
        Self {
            name: profile.name.clone(),
            labels: object::reported_labels(profile, machine),
            taints: object::taints(profile),
            allocatable: amounts::allocatable(&profile.reserved, &capacity),
            pressures: Pressures::default(),
            supplemental_groups_policy: None,
            object_state: NodeObjectState::Standalone,
        }
    }

    /// Whether it is one of the nodes that are selected.
    pub fn is_selected_by(&self, selector: &NodeSelector) -> bool {
        node_affinity::is_selected(self, selector)
    }

    /// The same node with what the API server knows of it. Amounts that the node itself measures stay its own: those of its object may be
    /// older than its configuration.
    #[must_use]
    pub fn with_object(&self, object: &Node, object_state: NodeObjectState) -> Self {
        let status = object.status.as_ref();
        let mut allocatable = read(status.and_then(|status| status.allocatable.as_ref()));
        allocatable.retain(|name, _| name.contains('/'));
        allocatable.extend(self.allocatable.clone());
        let mut labels = object.metadata.labels.clone().unwrap_or_default();
        // These are corrected within one report, whatever the object says.
        let own = self.labels.iter().filter(|(key, _)| object::is_system_label(key));
        labels.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        let features = status.and_then(|status| status.features.as_ref());
        let spec = object.spec.as_ref();
        Self {
            name: self.name.clone(),
            labels,
            taints: spec.and_then(|spec| spec.taints.clone()).unwrap_or_default(),
            allocatable,
            pressures: self.pressures,
            supplemental_groups_policy: features
                .and_then(|features| features.supplemental_groups_policy)
                .or(self.supplemental_groups_policy),
            object_state,
        }
    }
}
