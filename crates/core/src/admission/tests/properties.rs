//! What holds of every set of pods and every node.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::admission::predicates::{InsufficientResource, request_of};
use crate::admission::preemption;

const RESOURCES: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "example.com/device"];

/// A pod by its amounts of each resource and whether it is critical.
fn drawn() -> impl Strategy<Value = ([u8; 4], bool)> {
    (prop::array::uniform4(0_u8..6), prop::bool::weighted(0.2))
}

fn make((i, (amounts, is_critical)): (usize, &([u8; 4], bool))) -> Pod {
    let amounts = RESOURCES.iter().zip(amounts).map(|(name, amount)| (*name, amount.to_string()));
    let amounts: Vec<(&str, String)> = amounts.collect();
    let amounts: Vec<(&str, &str)> =
        amounts.iter().map(|(name, of)| (*name, of.as_str())).collect();
    let pod = requesting(pod(&format!("p{i:02}"), 1), &amounts);
    if *is_critical { critical(pod) } else { pod }
}

/// What pods ask for of every resource.
fn sum<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> BTreeMap<&'static str, i64> {
    let pods: Vec<&Arc<Pod>> = pods.collect();
    let of = |name| pods.iter().map(|pod| request_of(pod, name)).sum();
    ["pods"].into_iter().chain(RESOURCES).map(|name| (name, of(name))).collect()
}

/// What the shell knows: which pods run, which stop, and the admission itself.
struct Run {
    admission: PodAdmission,
    node: AdmissionNode,
    running: BTreeMap<PodUid, Arc<Pod>>,
    stopping: Vec<PodUid>,
}

impl Run {
    fn apply(&mut self, results: Vec<PodAdmitResult>) {
        for result in results {
            match result {
                PodAdmitResult::Admitted(pod) => drop(self.running.insert(pod.uid(), pod)),
                PodAdmitResult::Preempts(_, preemption) => {
                    self.stopping.extend(preemption.victims.iter().map(|pod| pod.uid()));
                }
                PodAdmitResult::Rejected(..) | PodAdmitResult::Waits(_) => {}
                PodAdmitResult::NeedsNode(_) => panic!("no selectors were drawn"),
            }
        }
    }

    fn add(&mut self, pod: Pod) {
        let handlers = NodeAdmitHandlers::default();
        let results = self.admission.admit(vec![Arc::new(pod)], &cx(&handlers, &self.node));
        self.apply(results);
    }

    fn stop_one(&mut self) {
        let uid = self.stopping.pop().or_else(|| self.running.keys().next().cloned());
        let Some(uid) = uid else { return };
        self.running.remove(&uid);
        let results = self.admission.free_resources(&uid);
        self.apply(results);
    }
}

proptest! {
    #[test]
    fn no_more_runs_than_there_is_whatever_comes_and_goes(
        pods in prop::collection::vec((drawn(), any::<bool>()), 1..24),
        has in prop::array::uniform5(1_u8..14),
    ) {
        let amounts = ["pods"].into_iter().chain(RESOURCES).zip(has);
        let amounts: Vec<(&str, String)> = amounts.map(|(name, of)| (name, of.to_string())).collect();
        let amounts: Vec<(&str, &str)> = amounts.iter().map(|(name, of)| (*name, of.as_str())).collect();
        let node = node(&amounts);
        let mut run = Run { admission: admission(), node, running: BTreeMap::new(), stopping: Vec::new() };
        for (i, (pod, stops)) in pods.iter().enumerate() {
            run.add(make((i, pod)));
            if *stops {
                run.stop_one();
            }
            for (name, used) in sum(run.running.values()) {
                let amount = &run.node.allocatable[name];
                let has = if name == "cpu" { amount.millis() } else { amount.units() };
                prop_assert!(used <= has, "{name}: {used} of {has}");
            }
        }
    }

    #[test]
    fn victims_make_enough_room_and_none_of_them_is_dispensable(
        pods in prop::collection::vec(drawn(), 0..12),
        needed in prop::array::uniform5(0_u8..12),
    ) {
        let pods: Vec<Pod> = pods.iter().enumerate().map(make).collect();
        let names = ["pods"].into_iter().chain(RESOURCES);
        let needed: Vec<InsufficientResource> = names
            .zip(needed)
            .filter(|(_, amount)| *amount > 0)
            .map(|(name, amount)| InsufficientResource {
                resource: name.to_owned(),
                requested: i64::from(amount) * if name == "cpu" { 1000 } else { 1 },
                used: 0,
                capacity: 0,
            })
            .collect();
        let all: Vec<&Pod> = pods.iter().collect();
        let suffices = |pods: &[&Pod]| {
            needed.iter().all(|need| {
                pods.iter().map(|pod| request_of(pod, &need.resource)).sum::<i64>() >= need.requested
            })
        };
        let preemptable: Vec<&Pod> = all.iter().copied().filter(|pod| !pod.is_critical()).collect();
        match preemption::victims(&critical(pod("new", 9)), &all, &needed) {
            Ok(victims) => {
                prop_assert!(suffices(&victims));
                prop_assert!(victims.iter().all(|pod| !pod.is_critical()));
                for spared in 0..victims.len() {
                    let mut fewer = victims.clone();
                    fewer.remove(spared);
                    prop_assert!(!suffices(&fewer), "{} is dispensable", victims[spared].uid());
                }
            }
            Err(_) => prop_assert!(!suffices(&preemptable)),
        }
    }
}
