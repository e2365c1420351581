//! Lists of sandboxes and containers, and their filters.

use std::collections::BTreeMap;

use oarsman_cri_types::v1::{self as cri, ContainerFilter, PodSandbox, PodSandboxFilter};

use super::containers::FakeContainer;
use super::sandboxes::FakeSandbox;
use super::state::FakeRuntimeState;

type Labels = BTreeMap<String, String>;

impl FakeRuntimeState {
    pub(super) fn list_sandboxes(&self, filter: &PodSandboxFilter) -> Vec<PodSandbox> {
        let PodSandboxFilter { id, state, label_selector } = filter;
        let wanted = |sandbox: &&FakeSandbox| {
            matches(id, &sandbox.id)
                && state.is_none_or(|state| state.state() == sandbox.state())
                && has_labels(label_selector, &sandbox.config.labels)
        };
        self.sandboxes.values().filter(wanted).map(FakeSandbox::listed).collect()
    }

    pub(super) fn list_containers(&self, filter: &ContainerFilter) -> Vec<cri::Container> {
        let state = filter.state.map(|state| state.state());
        let wanted = |container: &&FakeContainer| {
            selected(container, &filter.id, &filter.pod_sandbox_id, &filter.label_selector)
                && state.is_none_or(|state| state == container.state())
        };
        self.containers.values().filter(wanted).map(FakeContainer::listed).collect()
    }
}

/// Whether a container meets the conditions that are set.
pub(super) fn selected(
    container: &FakeContainer,
    id: &str,
    sandbox: &str,
    labels: &Labels,
) -> bool {
    matches(id, &container.id)
        && matches(sandbox, &container.sandbox)
        && has_labels(labels, &container.config.labels)
}

/// Whether the text is the wanted one; an empty one wants nothing.
pub(super) fn matches(wanted: &str, text: &str) -> bool {
    wanted.is_empty() || wanted == text
}

/// Whether all wanted labels are there.
pub(super) fn has_labels(wanted: &Labels, labels: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}
