//! Facts about admission, names and ownership.

mod admission;
mod allocation;
mod handlers;
mod names;
mod node;
mod ownership;
mod predicates;
mod preemption;
mod properties;
mod sysctls;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, PodSpec, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::*;
use crate::event::PodEvent;
use crate::lifecycle::PodFailure;
use crate::pod::{CRITICAL_PRIORITY, SOURCE_ANNOTATION};
use crate::quantity::Quantity;

/// A pod of the API server, made in that second.
fn pod(uid: &str, created: i64) -> Pod {
    let metadata = ObjectMeta {
        name: Some(format!("name-of-{uid}")),
        uid: Some(uid.to_owned()),
        creation_timestamp: Some(Time(Timestamp::from_second(created).unwrap())),
        ..Default::default()
    };
    Pod { metadata, ..Default::default() }
}

/// A static pod of that name.
fn from_file(uid: &str, name: &str) -> Pod {
    let annotations = [(SOURCE_ANNOTATION.to_owned(), "file".to_owned())];
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        annotations: Some(annotations.into()),
        ..Default::default()
    };
    Pod { metadata, ..Default::default() }
}

fn in_phase(pod: Pod, phase: &str) -> Pod {
    let status = PodStatus { phase: Some(phase.to_owned()), ..Default::default() };
    Pod { status: Some(status), ..pod }
}

/// Lets in so many pods and no more.
struct Capacity(usize);

impl AdmitHandler for Capacity {
    fn admit(&self, attributes: &PodAdmitAttributes<'_>) -> Result<(), AdmitRefusal> {
        let present = attributes.others.len();
        if present < self.0 {
            return Ok(());
        }
        Err(Rejection::new("OutOfpods", format!("{present} are there")).into())
    }
}

/// What a container asks for, such as `[("cpu", "100m")]`.
fn requirements(requests: &[(&str, &str)]) -> ResourceRequirements {
    let amounts = requests
        .iter()
        .map(|(name, amount)| ((*name).to_owned(), WireQuantity((*amount).to_owned())));
    ResourceRequirements { requests: Some(amounts.collect()), ..Default::default() }
}

/// The pod with one container that asks for this.
fn requesting(pod: Pod, requests: &[(&str, &str)]) -> Pod {
    let resources = Some(requirements(requests));
    let container = Container { name: "c".to_owned(), resources, ..Container::default() };
    let spec = PodSpec { containers: vec![container], ..pod.spec.clone().unwrap_or_default() };
    Pod { spec: Some(spec), ..pod }
}

fn critical(mut pod: Pod) -> Pod {
    pod.spec.get_or_insert_default().priority = Some(CRITICAL_PRIORITY);
    pod
}

/// A node that has these amounts for pods.
fn node(allocatable: &[(&str, &str)]) -> AdmissionNode {
    let amounts = allocatable.iter();
    let amounts =
        amounts.map(|(name, amount)| ((*name).to_owned(), Quantity::parse(amount).unwrap()));
    AdmissionNode {
        name: "n1".to_owned(),
        allocatable: amounts.collect(),
        ..AdmissionNode::default()
    }
}

/// The usual context: no pod ran before.
fn cx<'a>(handler: &'a dyn AdmitHandler, node: &'a AdmissionNode) -> AdmitContext<'a> {
    AdmitContext { handler, node, ran_before: &|_| false }
}

fn admission() -> PodAdmission {
    PodAdmission::default()
}

fn admit(
    admission: &mut PodAdmission,
    capacity: usize,
    pods: impl IntoIterator<Item = Pod>,
) -> Vec<String> {
    let pods = pods.into_iter().map(Arc::new).collect();
    let (handler, node) = (Capacity(capacity), AdmissionNode::default());
    admission.admit(pods, &cx(&handler, &node)).iter().map(brief).collect()
}

fn finish(admission: &mut PodAdmission, capacity: usize, uid: &str) -> Option<String> {
    let (handler, node) = (Capacity(capacity), AdmissionNode::default());
    let results = admission.release_name(&uid.into(), &cx(&handler, &node));
    results.first().map(brief)
}

/// An arrival in a few words.
fn brief(result: &PodAdmitResult) -> String {
    match result {
        PodAdmitResult::Admitted(pod) => format!("{} admitted", pod.uid()),
        PodAdmitResult::Rejected(pod, why) => format!("{} rejected: {}", pod.uid(), why.message),
        PodAdmitResult::Waits(pod) => format!("{} waits", pod.uid()),
        PodAdmitResult::Preempts(pod, Preemption { victims, .. }) => {
            let victims: Vec<String> = victims.iter().map(|pod| pod.uid().to_string()).collect();
            format!("{} preempts [{}]", pod.uid(), victims.join(" "))
        }
        PodAdmitResult::NeedsNode(pod) => format!("{} needs the node", pod.uid()),
    }
}
