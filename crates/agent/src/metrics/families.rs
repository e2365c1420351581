//! The families of `/metrics` that the agent writes, as text. `docs/metrics.md` lists them.

use oarsman_core::active_pods::{PodConfigState, PodCounts, WorkingPods};
use oarsman_core::exposition::{Exposition, HistogramSnapshot, MetricKind};

use super::AgentMetrics;

/// The call that begins a stream of the runtime's events.
const EVENT_STREAM: &str = "get_container_events";

impl AgentMetrics {
    /// Writes everything that is counted and measured, without the probes, which have an endpoint of their own.
    pub fn write(&self, out: &mut Exposition) {
        self.write_pods(out);
        self.write_relists(out);
        self.write_calls(out);
        self.write_starts(out);
        self.write_images(out);
        self.write_refusals(out);
        self.write_volumes(out);
        self.write_panics(out);
    }

    fn write_pods(&self, out: &mut Exposition) {
        histogram(
            out,
            "kubelet_containers_per_pod_count",
            "How many containers admitted pods have.",
            &self.containers_per_pod.snapshot(),
        );
        let help = "How long one piece of work of a pod worker took, in seconds.";
        let mut family =
            out.family("kubelet_pod_worker_duration_seconds", MetricKind::Histogram, help);
        for (operation, found) in self.pod_worker.snapshot() {
            family.histogram(&[("operation_type", operation)], &found);
        }
        histogram(
            out,
            "kubelet_pod_worker_start_duration_seconds",
            "Time from the first sight of a pod until its worker began, in seconds.",
            &self.pod_worker_start.snapshot(),
        );
        histogram(
            out,
            "kubelet_pod_start_duration_seconds",
            "Time from the first sight of a pod until all of it runs, in seconds.",
            &self.pod_start.snapshot(),
        );
        histogram(
            out,
            "kubelet_pod_start_sli_duration_seconds",
            "Time from the creation of a pod until the API server shows that all of it runs, without image pulls and init containers.",
            &self.startup.sli(),
        );
        if let Some(first) = self.startup.first_network_sli() {
            let name = "kubelet_first_network_pod_start_sli_duration_seconds";
            let help = "The same for the first pod with a network of its own.";
            out.single(name, MetricKind::Gauge, help, first.as_secs_f64());
        }
        histogram(
            out,
            "kubelet_pod_start_total_duration_seconds",
            "Time from the creation of a pod until the API server shows that all of it runs, in seconds.",
            &self.startup.total(),
        );
        histogram(
            out,
            "kubelet_pod_status_sync_duration_seconds",
            "Time from the change of a status until the API server has it, in seconds.",
            &self.status_sync.snapshot(),
        );
        counter(
            out,
            "kubelet_orphaned_runtime_pods_total",
            "Pods that only the runtime or the disk knew of.",
            self.orphaned_pods.get(),
        );
        let help = "Pods that came back under the same UID while they were being terminated.";
        let mut family = out.family("kubelet_restarted_pods_total", MetricKind::Counter, help);
        for (is_static, count) in self.restarted_pods.snapshot() {
            family.sample(&[static_label(is_static)], count as f64);
        }
    }

    fn write_relists(&self, out: &mut Exposition) {
        histogram(
            out,
            "kubelet_pleg_relist_duration_seconds",
            "How long a list of runtime and disk took, in seconds.",
            &self.relists.durations.snapshot(),
        );
        histogram(
            out,
            "kubelet_pleg_relist_interval_seconds",
            "Time between the beginnings of two lists of runtime and disk, in seconds.",
            &self.relists.intervals.snapshot(),
        );
        if let Some(last) = self.relists.last_seen() {
            let help = "When the last list of runtime and disk began, in seconds since 1970.";
            let seconds = last.as_duration().as_secs_f64();
            out.single("kubelet_pleg_last_seen_seconds", MetricKind::Gauge, help, seconds);
        }
    }

    fn write_calls(&self, out: &mut Exposition) {
        let calls = self.runtime_calls.snapshot();
        let help = "Calls to the container runtime.";
        let mut family = out.family("kubelet_runtime_operations_total", MetricKind::Counter, help);
        for (operation, found) in &calls {
            family.sample(&[("operation_type", operation)], found.count as f64);
        }
        let help = "How long calls to the container runtime took, in seconds.";
        let name = "kubelet_runtime_operations_duration_seconds";
        let mut family = out.family(name, MetricKind::Histogram, help);
        for (operation, found) in &calls {
            family.histogram(&[("operation_type", operation)], found);
        }
        let help = "Calls to the container runtime that failed.";
        let name = "kubelet_runtime_operations_errors_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        let errors = self.runtime_errors.snapshot();
        for (operation, count) in &errors {
            family.sample(&[("operation_type", operation)], *count as f64);
        }
        let begun = calls.get(EVENT_STREAM).map_or(0, |found| found.count);
        write_event_streams(begun, errors.get(EVENT_STREAM).copied().unwrap_or_default(), out);
        let help = "How long it took to make or to remove the cgroup of a pod, in seconds.";
        let name = "kubelet_cgroup_manager_duration_seconds";
        let mut family = out.family(name, MetricKind::Histogram, help);
        for (operation, found) in self.cgroup_calls.snapshot() {
            family.histogram(&[("operation_type", operation)], &found);
        }
    }

    fn write_starts(&self, out: &mut Exposition) {
        let (made, failed) = (self.sandboxes.snapshot(), self.sandbox_errors.snapshot());
        let help = "How long sandboxes took to be made, in seconds.";
        let name = "kubelet_run_podsandbox_duration_seconds";
        let mut family = out.family(name, MetricKind::Histogram, help);
        for (handler, found) in &made {
            family.histogram(&[("runtime_handler", handler)], found);
        }
        let help = "Sandboxes that the runtime did not make.";
        let name = "kubelet_run_podsandbox_errors_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        for (handler, count) in &failed {
            family.sample(&[("runtime_handler", handler)], *count as f64);
        }
        let errors: u64 = failed.values().sum();
        let all = errors + made.values().map(|found| found.count).sum::<u64>();
        counter(out, "kubelet_started_pods_total", "Sandboxes that were asked for.", all);
        let help = "Sandboxes that were asked for and not made.";
        counter(out, "kubelet_started_pods_errors_total", help, errors);
        self.write_user_namespaces(out);
        self.write_containers(out);
    }

    fn write_user_namespaces(&self, out: &mut Exposition) {
        counter(
            out,
            "kubelet_started_user_namespaced_pods_total",
            "Sandboxes with a user namespace that were asked for.",
            self.started_user_namespaces.get(),
        );
        counter(
            out,
            "kubelet_started_user_namespaced_pods_errors_total",
            "Sandboxes with a user namespace that were asked for and not made.",
            self.user_namespace_errors.get(),
        );
    }

    fn write_containers(&self, out: &mut Exposition) {
        let help = "Starts of containers, also of those that failed.";
        let mut family = out.family("kubelet_started_containers_total", MetricKind::Counter, help);
        for (container_type, count) in self.started_containers.snapshot() {
            family.sample(&[("container_type", container_type)], count as f64);
        }
        let help = "Starts of containers that failed, by the reason in their status.";
        let name = "kubelet_started_containers_errors_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        for ((container_type, reason), count) in self.start_errors.snapshot() {
            let labels = [("container_type", container_type), ("code", &reason.to_string())];
            family.sample(&labels, count as f64);
        }
        counter(
            out,
            "kubelet_sleep_action_terminated_early_total",
            "Sleeps of lifecycle hooks that ended before their time.",
            self.sleeps_terminated_early.get(),
        );
        counter(
            out,
            "kubelet_lifecycle_handler_http_fallbacks_total",
            "HTTPS hooks that were answered in plain HTTP.",
            self.http_fallbacks.get(),
        );
        let help = "Containers that have ended.";
        let name = "kubelet_terminated_containers_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        for ((container_type, code, reason), count) in self.terminated_containers.snapshot() {
            let code = code.to_string();
            let labels =
                [("container_type", container_type), ("exit_code", &code), ("reason", reason)];
            family.sample(&labels, count as f64);
        }
    }

    fn write_refusals(&self, out: &mut Exposition) {
        let help = "Pods that were not admitted.";
        let name = "kubelet_admission_rejections_total";
        let mut family = out.family(name, MetricKind::Counter, help);
        for (reason, count) in self.rejections.snapshot() {
            family.sample(&[("reason", reason)], count as f64);
        }
        let help = "Pods that were killed to make room for a critical one.";
        let mut family = out.family("kubelet_preemptions", MetricKind::Counter, help);
        for (signal, count) in self.preemptions.snapshot() {
            family.sample(&[("preemption_signal", signal)], count as f64);
        }
    }

    fn write_volumes(&self, out: &mut Exposition) {
        let help = "Volumes that pods should have, and that are set up.";
        let mut family = out.family("volume_manager_total_volumes", MetricKind::Gauge, help);
        for ((state, plugin), count) in self.volumes.counts() {
            family.sample(&[("plugin_name", &plugin), ("state", state)], count as f64);
        }
    }

    fn write_panics(&self, out: &mut Exposition) {
        let help = "Panics of the agent's tasks, each of which was started again.";
        let mut family = out.family("oarsman_task_panics_total", MetricKind::Counter, help);
        for (task, count) in self.panics.counts() {
            family.sample(&[("task", &task.to_string())], count as f64);
        }
    }
}

/// Writes the gauges of pods and containers. Static pods have mirror pods only in a cluster.
pub fn write_pod_counts(counts: &PodCounts, has_cluster: bool, out: &mut Exposition) {
    let help = "Pods whose sandbox runs.";
    gauge(out, "kubelet_running_pods", help, counts.running);
    out.family("kubelet_running_containers", MetricKind::Gauge, "Containers of pods by state.")
        .sample(&[("container_state", "exited")], counts.exited_containers as f64)
        .sample(&[("container_state", "running")], counts.running_containers as f64);
    let by_source = [
        ("kubelet_desired_pods", "Pods that the sources hold.", counts.desired),
        ("kubelet_active_pods", "Pods that count when a new one is admitted.", counts.active),
    ];
    for (name, help, [of_api, of_files]) in by_source {
        out.family(name, MetricKind::Gauge, help)
            .sample(&[static_label(false)], of_api as f64)
            .sample(&[static_label(true)], of_files as f64);
    }
    if has_cluster {
        let help = "Static pods that the API server is to show.";
        gauge(out, "kubelet_mirror_pods", help, counts.active[1]);
    }
    let help = "Pods that have a worker, by what it does and whether a source holds them.";
    let mut family = out.family("kubelet_working_pods", MetricKind::Gauge, help);
    for (WorkingPods { config, lifecycle, is_static }, count) in &counts.working {
        let of_source = match config {
            PodConfigState::RuntimeOnly => ("static", "unknown"),
            PodConfigState::Desired | PodConfigState::Orphan => static_label(*is_static),
        };
        let labels = [("config", config.label()), ("lifecycle", *lifecycle), of_source];
        family.sample(&labels, *count as f64);
    }
    let help = "Ephemeral containers of the pods that the sources hold.";
    gauge(out, "kubelet_managed_ephemeral_containers", help, counts.ephemeral_containers);
}

pub(super) fn tristate(answer: Option<bool>) -> &'static str {
    match answer {
        Some(true) => "true",
        Some(false) => "false",
        None => "unknown",
    }
}

/// The Go kubelet leaves the label of other pods empty.
fn static_label(is_static: bool) -> (&'static str, &'static str) {
    ("static", if is_static { "true" } else { "" })
}

fn histogram(out: &mut Exposition, name: &str, help: &str, found: &HistogramSnapshot) {
    out.family(name, MetricKind::Histogram, help).histogram(&[], found);
}

pub(super) fn counter(out: &mut Exposition, name: &str, help: &str, count: u64) {
    out.single(name, MetricKind::Counter, help, count as f64);
}

fn gauge(out: &mut Exposition, name: &str, help: &str, count: u64) {
    out.single(name, MetricKind::Gauge, help, count as f64);
}

/// Of the calls that begin a stream of the runtime's events, how many did and how many could not.
fn write_event_streams(calls: u64, errors: u64, out: &mut Exposition) {
    counter(
        out,
        "kubelet_evented_pleg_connection_success_count",
        "Streams of the runtime's events that were begun.",
        calls.saturating_sub(errors),
    );
    counter(
        out,
        "kubelet_evented_pleg_connection_error_count",
        "Streams of the runtime's events that could not be begun.",
        errors,
    );
}
