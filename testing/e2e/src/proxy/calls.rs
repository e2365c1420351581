//! The journal of the proxy: its calls with their objects, times and results.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oarsman_cri::CriError;
use tokio::time::Instant;

use super::subject::CallSubject;

/// Calls that only read.
const READS: [&str; 17] = [
    "Version",
    "Status",
    "RuntimeConfig",
    "PodSandboxStatus",
    "ListPodSandbox",
    "ContainerStatus",
    "ListContainers",
    "GetContainerEvents",
    "ContainerStats",
    "ListContainerStats",
    "PodSandboxStats",
    "ListPodSandboxStats",
    "ListMetricDescriptors",
    "ListPodSandboxMetrics",
    "ListImages",
    "ImageStatus",
    "ImageFsInfo",
];

/// The identity of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "as in the pod's metadata")]
pub struct PodRef {
    pub uid: String,
    pub namespace: String,
    pub name: String,
}

/// A call that came.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// Its RPC name, such as `StopContainer`.
    pub name: &'static str,
    /// The object of the call: an id, an image, or `namespace/name[/container]` of what has no id yet. None for the runtime as a whole and for
    /// unfiltered lists.
    pub subject: Option<String>,
    /// The pod it concerns, if it concerns one that is known.
    pub pod: Option<PodRef>,
    /// When it came.
    pub at: Instant,
    /// How long it took, if it has ended.
    pub took: Option<Duration>,
    /// The error it failed with.
    pub error: Option<CriError>,
}

impl RecordedCall {
    /// Whether it only reads.
    pub fn is_read(&self) -> bool {
        READS.contains(&self.name)
    }

    /// Whether it concerns the pod of that name or UID.
    pub fn is_of(&self, pod: &str) -> bool {
        self.pod.as_ref().is_some_and(|it| it.uid == pod || it.name == pod)
    }
}

impl fmt::Display for RecordedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(subject) = &self.subject {
            write!(f, " {subject}")?;
        }
        if let Some(pod) = &self.pod {
            write!(f, " of {}/{}", pod.namespace, pod.name)?;
        }
        match (&self.took, &self.error) {
            (Some(took), Some(error)) => write!(f, ", failed after {took:.1?}: {error}"),
            (Some(took), None) => write!(f, ", took {took:.1?}"),
            (None, _) => write!(f, ", has not ended"),
        }
    }
}

/// All calls that came.
#[derive(Default)]
pub(super) struct CallJournal {
    calls: Mutex<Vec<RecordedCall>>,
}

impl CallJournal {
    /// Records a call and returns its number.
    pub(super) fn begin(&self, name: &'static str, subject: &CallSubject) -> usize {
        let (pod, subject) = (subject.pod.clone(), subject.about.clone());
        let call = RecordedCall { name, subject, pod, at: Instant::now(), took: None, error: None };
        let mut calls = self.lock();
        calls.push(call);
        calls.len() - 1
    }

    /// Records the end of a call, and its error if it failed.
    pub(super) fn end(&self, number: usize, error: Option<&CriError>) {
        if let Some(call) = self.lock().get_mut(number) {
            call.took = Some(call.at.elapsed());
            call.error = error.cloned();
        }
    }

    pub(super) fn all(&self) -> Vec<RecordedCall> {
        self.lock().clone()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
