//! Writing down how the pod is: to the cluster for its pods, to the disk for those that no cluster remembers.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use oarsman_core::lifecycle::{Standing, Verdict};
use oarsman_core::pod::PodExt;
use oarsman_core::status::Input;
use oarsman_core::status::deadline;
use oarsman_core::status::merge::differs;
use oarsman_core::status::phase::Phase;
use oarsman_core::view::PodView;

use super::room::{Memory, Room};

/// How often an end is written down before it is left to the next occasion.
const TRIES: u32 = 5;

impl Room {
    /// Makes the pod's status from what is known, and hands it on if it says something new.
    pub(super) async fn publish(
        &self,
        pod: &Pod,
        standing: Option<Standing>,
        verdict: Option<&Verdict>,
    ) -> PodStatus {
        let (status, outward, is_news) = self.make_status(pod, standing, verdict);
        if pod.is_static() {
            // An agent that has just started knows from the disk what it told, and those who show the pod do not.
            self.node.mirrors.set_status(&self.uid, &self.name, &outward);
        }
        if is_news {
            self.hand_on(pod, &outward).await;
        }
        status
    }

    /// The status as it is, what of it may be told now, and whether that is something new.
    fn make_status(
        &self,
        pod: &Pod,
        standing: Option<Standing>,
        verdict: Option<&Verdict>,
    ) -> (PodStatus, PodStatus, bool) {
        let mut memory = self.memory();
        let now = self.node.seams.clock.wall();
        let make = |memory: &Memory, standing| {
            self.node.decisions.status(&Input {
                pod,
                view: &memory.view,
                previous: memory.status.as_ref(),
                start_errors: &memory.start_errors,
                held_by: memory.held_by.as_deref(),
                probes: &memory.probes,
                last_words: &memory.last_words,
                node: &self.node.config.facts,
                standing,
                verdict,
                now,
            })
        };
        // A pod that has stopped but still holds something is shown as one that is stopping.
        let shown = match standing {
            Some(Standing::Stopped) => Some(Standing::Terminating),
            other => other,
        };
        let (status, shown) = (make(&memory, standing), make(&memory, shown));
        let said = memory.status.as_ref().or(pod.status.as_ref());
        self.node.recorder.record(pod, deadline::news(said, &status));
        memory.status = Some(status.clone());
        let before = said_before(memory.told.as_ref(), pod.status.as_ref());
        let outward = self.node.decisions.outward(&before, &shown, standing, now);
        self.node.book.status(&self.uid, &outward);
        let is_news = memory.told.as_ref().is_none_or(|told| differs(told, &outward));
        if is_news {
            memory.told = Some(outward.clone());
        }
        (status, outward, is_news)
    }

    async fn hand_on(&self, pod: &Pod, status: &PodStatus) {
        if !pod.is_static() {
            return self.node.statuses.publish(&self.uid, &self.name, status.clone());
        }
        // What a pod ended with must outlive the machine: it is all that keeps it from running again.
        let lasting = Phase::of(status).is_some_and(Phase::is_terminal);
        for _ in 0..if lasting { TRIES } else { 1 } {
            match self.node.seams.records.remember(&self.uid, status, lasting).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(pod = %self.name, %error, "its status would not outlive us");
                }
            }
        }
        // Whoever publishes next tries again.
        self.memory().told = None;
    }

    /// Reads what containers wrote before they ended, once for each.
    pub(super) async fn hear_last_words(&self, view: &PodView) {
        self.memory().last_words.retain(|id, _| view.containers.iter().any(|c| c.id == *id));
        let unheard: Vec<_> = {
            let memory = self.memory();
            let ended = view.containers.iter().filter(|c| c.state.exit().is_some());
            ended.filter(|c| !memory.last_words.contains_key(&c.id)).cloned().collect()
        };
        for container in unheard {
            match self.node.seams.pod_files.termination_message(&self.uid, &container).await {
                Ok(words) => {
                    self.memory().last_words.insert(container.id, words);
                }
                Err(error) => tracing::warn!(pod = %self.name, %error, "its last words are lost"),
            }
        }
    }
}

/// The API server's copy, with what others wrote there, and the phase that we told last: the copy may be older than that. An end
/// that somebody else wrote stays.
fn said_before(told: Option<&PodStatus>, api: Option<&PodStatus>) -> PodStatus {
    let before = api.cloned().unwrap_or_default();
    let ended = Phase::of(&before).is_some_and(Phase::is_terminal);
    match told {
        Some(told) if !ended => PodStatus {
            phase: told.phase.clone(),
            reason: told.reason.clone(),
            message: told.message.clone(),
            ..before
        },
        _ => before,
    }
}
