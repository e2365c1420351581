//! Static pods of one name, one after the other: an edited manifest is a new pod, and the old one goes first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::ids::{FullName, PodUid};
use crate::pod::PodExt;

/// Which static pod has which name, and which pods wait for it.
#[derive(Clone, Debug, Default)]
pub(super) struct StaticPodNames {
    holders: BTreeMap<FullName, NameHolder>,
}

#[derive(Clone, Debug)]
struct NameHolder {
    by: PodUid,
    waiting: VecDeque<Arc<Pod>>,
}

impl StaticPodNames {
    /// Whether the pod has its name now; otherwise it waits in line.
    pub(super) fn claim(&mut self, pod: &Arc<Pod>) -> bool {
        let uid = pod.uid();
        let free = || NameHolder { by: uid.clone(), waiting: VecDeque::new() };
        let holders = self.holders.entry(pod.full_name()).or_insert_with(free);
        if holders.by == uid {
            return true;
        }
        match holders.waiting.iter_mut().find(|waiting| waiting.uid() == uid) {
            Some(waiting) => *waiting = pod.clone(),
            None => holders.waiting.push_back(pod.clone()),
        }
        false
    }

    /// What waits is started as it is wanted by then.
    pub(super) fn update(&mut self, pod: &Arc<Pod>) {
        let Some(holders) = self.holders.get_mut(&pod.full_name()) else { return };
        let mut waiting = holders.waiting.iter_mut();
        if let Some(waiting) = waiting.find(|waiting| waiting.uid() == pod.uid()) {
            *waiting = pod.clone();
        }
    }

    /// Takes a pod out of the line. Whether it was in one.
    pub(super) fn withdraw(&mut self, uid: &PodUid) -> bool {
        self.holders.values_mut().any(|holders| {
            let before = holders.waiting.len();
            holders.waiting.retain(|waiting| waiting.uid() != *uid);
            holders.waiting.len() < before
        })
    }

    /// The pod gives its name up; the first pod that waits for the name, which is returned, has it now.
    pub(super) fn release(&mut self, uid: &PodUid) -> Option<Arc<Pod>> {
        let name = self.holders.iter().find(|(_, holders)| holders.by == *uid)?.0.clone();
        let holders = self.holders.get_mut(&name)?;
        let Some(next) = holders.waiting.pop_front() else {
            self.holders.remove(&name);
            return None;
        };
        holders.by = next.uid();
        Some(next)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }
}
