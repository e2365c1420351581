//! Ids that a client has shortened: the beginning of an id names the only object whose id begins so, as with containerd. People pass on what
//! `crictl ps` shows.

use std::collections::BTreeMap;
use std::ops::Bound;

use oarsman_cri_types::v1 as cri;

use crate::inner::RuntimeInner;

impl RuntimeInner {
    /// The id of the sandbox that is meant; what names none, or more than one, stays as it is.
    pub(crate) fn sandbox_id(&self, id: &str) -> String {
        whole(&self.state.lock().sandboxes, id)
    }

    /// The same of a container.
    pub(crate) fn container_id(&self, id: &str) -> String {
        whole(&self.state.lock().containers, id)
    }

    pub(crate) fn sandbox_filter(
        &self,
        filter: Option<cri::PodSandboxFilter>,
    ) -> cri::PodSandboxFilter {
        let filter = filter.unwrap_or_default();
        cri::PodSandboxFilter { id: self.sandbox_id(&filter.id), ..filter }
    }

    pub(crate) fn container_filter(
        &self,
        filter: Option<cri::ContainerFilter>,
    ) -> cri::ContainerFilter {
        let filter = filter.unwrap_or_default();
        let pod_sandbox_id = self.sandbox_id(&filter.pod_sandbox_id);
        cri::ContainerFilter { id: self.container_id(&filter.id), pod_sandbox_id, ..filter }
    }
}

fn whole<V>(all: &BTreeMap<String, V>, id: &str) -> String {
    let from = (Bound::Included(id), Bound::Unbounded);
    let mut found = all.range::<str, _>(from).map(|(known, _)| known);
    let mut next = || found.next().filter(|known| !id.is_empty() && known.starts_with(id));
    match (next(), next()) {
        (Some(only), None) => only.clone(),
        _ => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_names_the_only_object_that_has_it() {
        let all: BTreeMap<String, ()> =
            ["1a2b", "1a3c", "2f", "2f00"].map(|id| (id.to_owned(), ())).into();
        let rows = [
            ("1a2b", "1a2b"),
            ("1a2", "1a2b"),
            ("1a", "1a"),
            ("2f", "2f"),
            ("2f0", "2f00"),
            ("3", "3"),
            ("1a2b4", "1a2b4"),
            ("", ""),
        ];
        for (id, expected) in rows {
            assert_eq!(whole(&all, id), expected, "{id:?}");
        }
    }
}
