//! What all explanations of one pod need from its report.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use super::container::ContainerSnapshot;
use super::phrases;
use crate::pod::PodExt;
use crate::report::{EventReport, NodeReport, PodActivity, PodReport, RuntimeReport};
use crate::time::wall_between;

/// A pod, and the node it is on.
pub(super) struct ExplainContext<'a> {
    pub(super) node: &'a NodeReport,
    pub(super) report: &'a PodReport,
    pub(super) pod: &'a Pod,
    pub(super) containers: Vec<ContainerSnapshot<'a>>,
}

impl<'a> ExplainContext<'a> {
    pub(super) fn new(node: &'a NodeReport, report: &'a PodReport) -> Self {
        let pod = &report.pod;
        Self { node, report, pod, containers: ContainerSnapshot::all(pod) }
    }

    pub(super) fn status(&self) -> Option<&'a PodStatus> {
        self.pod.status.as_ref()
    }

    /// How the commands are told which pod is meant.
    fn argument(&self) -> String {
        let name = self.pod.full_name();
        match name.namespace.as_str() {
            "default" => name.name,
            namespace => format!("{namespace}/{}", name.name),
        }
    }

    /// Where the pod's manifest is to be edited.
    pub(super) fn manifest_path(&self) -> &'a str {
        self.report.place.as_deref().unwrap_or("the pod's manifest")
    }

    /// The command that shows what a container says.
    pub(super) fn logs(&self, container: &str) -> String {
        format!("`oarsman logs -c {container} {}`", self.argument())
    }

    /// The command that shows what the one before it said.
    pub(super) fn logs_before(&self, container: &str) -> String {
        format!("`oarsman logs -c {container} --previous {}`", self.argument())
    }

    /// The command that shows all there is.
    pub(super) fn describe(&self) -> String {
        format!("`oarsman describe {}`", self.argument())
    }

    /// The command that shows what the runtime says.
    pub(super) fn runtime_log(&self) -> String {
        let RuntimeReport { name, endpoint, .. } = &self.node.runtime;
        format!("`journalctl -u {}`", runtime_unit(name, endpoint))
    }

    pub(super) fn age(&self, since: Timestamp) -> Duration {
        wall_between(since, self.node.now)
    }

    /// `3 minutes`, from then to now.
    pub(super) fn human_duration(&self, since: Timestamp) -> String {
        phrases::human_duration(self.age(since))
    }

    /// When the next try is, as the end of a sentence.
    pub(super) fn next_try(&self) -> String {
        let wait = self.report.next_try.map(|at| wall_between(self.node.now, at));
        match wait.filter(|wait| !wait.is_zero()) {
            Some(wait) => format!("; the next try is in {}", phrases::human_duration(wait)),
            None => String::new(),
        }
    }

    /// What is done to this container right now.
    pub(super) fn doing(&self, container: &str) -> Option<&'a PodActivity> {
        let doing = self.report.doing.as_ref()?;
        doing.container.as_deref().is_none_or(|name| name == container).then_some(doing)
    }

    /// The last of the pod's events with that reason; of one container, if it is given.
    pub(super) fn event(&self, reason: &str, container: Option<&str>) -> Option<&'a EventReport> {
        let (name, uid) = (self.pod.full_name(), self.pod.uid());
        let about = container.map(|container| format!("{{{container}}}"));
        let is_it = |event: &&EventReport| {
            let path = event.field_path.as_deref().unwrap_or_default();
            event.reason == reason
                && event.full_name() == name
                && event.uid == uid.as_str()
                && about.as_ref().is_none_or(|about| path.ends_with(about.as_str()))
        };
        self.node.events.iter().filter(is_it).max_by_key(|event| event.last)
    }
}

/// The unit of a runtime of that name. The embedded one is a process of its own unless the agent has it inside.
fn runtime_unit<'a>(name: &'a str, endpoint: &str) -> &'a str {
    match (name, endpoint) {
        ("", _) => "containerd",
        ("oarsman", "embedded") => "oarsman",
        ("oarsman", _) => "oarsman-cri",
        (name, _) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_a_runtime_is_that_of_its_unit() {
        let rows = [
            ("", "unix:///r", "containerd"),
            ("containerd", "unix:///r", "containerd"),
            ("oarsman", "embedded", "oarsman"),
            ("oarsman", "unix:///r", "oarsman-cri"),
        ];
        for (name, endpoint, unit) in rows {
            assert_eq!(runtime_unit(name, endpoint), unit, "{name} {endpoint}");
        }
    }
}
