//! Facts about admission, names and ownership.

mod admission;
mod names;
mod ownership;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::*;
use crate::pod::SOURCE_ANNOTATION;

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
    fn check(&self, _: &Pod, present: &[&Pod]) -> Result<(), Rejection> {
        if present.len() < self.0 {
            return Ok(());
        }
        let message = format!("{} are there", present.len());
        Err(Rejection { reason: "OutOfpods".to_owned(), message })
    }
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
    admission.admit(pods, &Capacity(capacity)).iter().map(brief).collect()
}

fn finish(admission: &mut PodAdmission, capacity: usize, uid: &str) -> Option<String> {
    admission.release_name(&uid.into(), &Capacity(capacity)).as_ref().map(brief)
}

/// An arrival in a few words.
fn brief(result: &PodAdmitResult) -> String {
    match result {
        PodAdmitResult::Admitted(pod) => format!("{} admitted", pod.uid()),
        PodAdmitResult::Rejected(pod, why) => format!("{} rejected: {}", pod.uid(), why.message),
        PodAdmitResult::Waits(pod) => format!("{} waits", pod.uid()),
    }
}
