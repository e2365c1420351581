//! Answers of the runtime: decoded, made a view of a pod, and followed by every decision that is made from a view.

mod decisions;
mod seeds;

use std::collections::BTreeMap;
use std::fmt::Debug;

use oarsman_core::node::runtime::RuntimeHealth;
use oarsman_core::time::Mono;
use oarsman_core::view::PodView;
use oarsman_core::view::from_cri::{by_pod, pod_view};
use oarsman_cri_types::v1;
use prost::Message;

use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "cri-answers", max_len: 4096, run, seeds: seeds::seeds };

/// What the runtime has answered, by call.
#[derive(Default)]
struct CriAnswers {
    sandboxes: Vec<v1::PodSandbox>,
    containers: Vec<v1::Container>,
    sandbox_statuses: Vec<v1::PodSandboxStatus>,
    container_statuses: Vec<v1::ContainerStatus>,
}

fn run(bytes: &[u8]) {
    let answers = CriAnswers::decode(bytes);
    let views = answers.views();
    decisions::of_views(&views);
}

impl CriAnswers {
    /// An input is a list of messages: a byte for the call, two for the length, little end first, then the message.
    fn decode(mut bytes: &[u8]) -> Self {
        let mut answers = Self::default();
        while let [call, low, high, rest @ ..] = bytes {
            let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
            let (message, after) = rest.split_at(length);
            answers.take(*call, message);
            bytes = after;
        }
        answers
    }

    fn take(&mut self, call: u8, message: &[u8]) {
        match call % 8 {
            0 => self.sandboxes.extend(decoded::<v1::ListPodSandboxResponse>(message).items),
            1 => self.containers.extend(decoded::<v1::ListContainersResponse>(message).containers),
            2 => {
                let answer = decoded::<v1::PodSandboxStatusResponse>(message);
                self.sandbox_statuses.extend(answer.status);
                self.container_statuses.extend(answer.containers_statuses);
            }
            3 => {
                let answer = decoded::<v1::ContainerStatusResponse>(message);
                self.container_statuses.extend(answer.status);
            }
            4 => runtime_status(&decoded(message)),
            5 => RuntimeHealth::default().set_version(&decoded(message)),
            6 => {
                let event = decoded::<v1::ContainerEventResponse>(message);
                self.sandbox_statuses.extend(event.pod_sandbox_status);
                self.container_statuses.extend(event.containers_statuses);
            }
            _ => decisions::of_images(&decoded::<v1::ListImagesResponse>(message).images),
        }
    }

    /// The pods that the lists tell of, each with the statuses that name its parts.
    fn views(&self) -> Vec<PodView> {
        let listed = by_pod(self.sandboxes.clone(), self.containers.clone());
        let statuses: BTreeMap<&str, &v1::ContainerStatus> =
            self.container_statuses.iter().map(|status| (status.id.as_str(), status)).collect();
        let view = |(uid, pod): (_, oarsman_core::view::from_cri::ListedPod)| {
            pod.is_labelled(&uid);
            let of_pod = |status: &&v1::PodSandboxStatus| {
                pod.sandboxes.iter().any(|sandbox| sandbox.id == status.id)
            };
            let sandboxes: Vec<_> = self.sandbox_statuses.iter().filter(of_pod).collect();
            let containers = pod.containers.iter();
            let containers = containers.filter_map(|it| Some((it, *statuses.get(it.id.as_str())?)));
            pod_view(uid, pod.full_name.clone(), sandboxes, containers)
        };
        listed.into_iter().map(view).collect()
    }
}

/// What cannot be decoded is an error of the call; what can, is encoded as the same message.
fn decoded<M: Message + Default + PartialEq + Debug>(bytes: &[u8]) -> M {
    let Ok(message) = M::decode(bytes) else { return M::default() };
    let again = M::decode(message.encode_to_vec().as_slice());
    assert_eq!(again.as_ref(), Ok(&message), "a message is not what it was when it is sent on");
    message
}

fn runtime_status(status: &v1::StatusResponse) {
    let mut health = RuntimeHealth::default();
    health.set_status(status, Mono::default());
    let ready = health.is_ready(Mono::default());
    assert!(!ready || health.errors(Mono::default()).is_empty(), "ready with errors");
}
