//! Measures the calls of seams, once for all their methods.

use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_core::time::Mono;
use oarsman_cri::Runtime;
use oarsman_host::pod_cgroups::Cgroups;
use oarsman_seam::{Call, Middleware, SeamError, WithMiddleware};

use super::{AgentMetrics, CounterVec, HistogramVec};

/// The runtime, with every call measured.
pub fn measured_runtime(
    runtime: Arc<dyn Runtime>,
    clock: Arc<dyn Clock>,
    metrics: &Arc<AgentMetrics>,
) -> Arc<dyn Runtime> {
    let metrics = Arc::clone(metrics);
    Arc::new(WithMiddleware::new(runtime, CallMeasurement { clock, metrics, seam: RUNTIME }))
}

/// The cgroups of pods, with the calls measured that change them.
pub fn measured_cgroups(
    cgroups: Arc<dyn Cgroups>,
    clock: Arc<dyn Clock>,
    metrics: &Arc<AgentMetrics>,
) -> Arc<dyn Cgroups> {
    let metrics = Arc::clone(metrics);
    Arc::new(WithMiddleware::new(cgroups, CallMeasurement { clock, metrics, seam: CGROUPS }))
}

/// How the calls of a seam are counted.
#[derive(Clone, Copy)]
struct MeasuredSeam {
    /// The names of calls, and the operations that they are counted as. Others are not measured.
    operations: &'static [(&'static str, &'static str)],
    durations: fn(&AgentMetrics) -> &HistogramVec<&'static str>,
    errors: Option<fn(&AgentMetrics) -> &CounterVec<&'static str>>,
}

const RUNTIME: MeasuredSeam = MeasuredSeam {
    operations: RUNTIME_OPERATIONS,
    durations: |metrics| &metrics.runtime_calls,
    errors: Some(|metrics| &metrics.runtime_errors),
};

const CGROUPS: MeasuredSeam = MeasuredSeam {
    operations: &[
        ("make the cgroup of", "create"),
        ("update the cgroup of", "update"),
        ("remove the cgroup of", "destroy"),
    ],
    durations: |metrics| &metrics.cgroup_calls,
    errors: None,
};

/// The calls of CRI, and what the Go kubelet calls them in its metrics.
const RUNTIME_OPERATIONS: &[(&str, &str)] = &[
    ("Attach", "attach"),
    ("CheckpointContainer", "checkpoint_container"),
    ("ContainerStats", "container_stats"),
    ("ContainerStatus", "container_status"),
    ("CreateContainer", "create_container"),
    ("Exec", "exec"),
    ("ExecSync", "exec_sync"),
    ("GetContainerEvents", "get_container_events"),
    ("ImageFsInfo", "image_fs_info"),
    ("ImageStatus", "image_status"),
    ("ListContainerStats", "list_container_stats"),
    ("ListContainers", "list_containers"),
    ("ListImages", "list_images"),
    ("ListMetricDescriptors", "list_metric_descriptors"),
    ("ListPodSandbox", "list_podsandbox"),
    ("ListPodSandboxMetrics", "list_podsandbox_metrics"),
    ("ListPodSandboxStats", "list_podsandbox_stats"),
    ("PodSandboxStats", "podsandbox_stats"),
    ("PodSandboxStatus", "podsandbox_status"),
    ("PortForward", "port_forward"),
    ("PullImage", "pull_image"),
    ("RemoveContainer", "remove_container"),
    ("RemoveImage", "remove_image"),
    ("RemovePodSandbox", "remove_podsandbox"),
    ("ReopenContainerLog", "reopen_container_log"),
    ("RunPodSandbox", "run_podsandbox"),
    ("RuntimeConfig", "runtime_config"),
    ("StartContainer", "start_container"),
    ("Status", "status"),
    ("StopContainer", "stop_container"),
    ("StopPodSandbox", "stop_podsandbox"),
    ("UpdateContainerResources", "update_container"),
    ("UpdatePodSandboxResources", "update_podsandbox_resources"),
    ("UpdateRuntimeConfig", "update_runtime_config"),
    ("Version", "version"),
];

/// Measures every call.
struct CallMeasurement {
    clock: Arc<dyn Clock>,
    metrics: Arc<AgentMetrics>,
    seam: MeasuredSeam,
}

/// A call under way. One that is given up by its caller counts too, and not as an error.
struct CallUnderWay<'m> {
    of: &'m CallMeasurement,
    operation: &'static str,
    began: Mono,
}

impl Drop for CallUnderWay<'_> {
    fn drop(&mut self) {
        let CallMeasurement { clock, metrics, seam } = self.of;
        let duration = clock.mono().since(self.began);
        (seam.durations)(metrics).observe_duration(self.operation, duration);
    }
}

impl CallMeasurement {
    fn begin(&self, call: &Call) -> Option<CallUnderWay<'_>> {
        let (_, operation) = self.seam.operations.iter().find(|(name, _)| *name == call.name)?;
        Some(CallUnderWay { of: self, operation, began: self.clock.mono() })
    }
}

impl Middleware for CallMeasurement {
    async fn around<T, E>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: SeamError,
    {
        let under_way = self.begin(&call);
        let answer = answer.await;
        if let (Err(_), Some(CallUnderWay { operation, .. })) = (&answer, &under_way)
            && let Some(errors) = self.seam.errors
        {
            errors(&self.metrics).increment(operation);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use oarsman_clock::SystemClock;
    use oarsman_cri::CriError;
    use tokio::time::{sleep, timeout};

    use super::*;

    fn measurement() -> CallMeasurement {
        let clock = Arc::new(SystemClock::start());
        CallMeasurement { clock, metrics: Arc::default(), seam: RUNTIME }
    }

    fn call(name: &'static str) -> Call {
        Call { name, object: String::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_with_their_duration_and_errors_by_operation() {
        let measured = measurement();
        let slow = async {
            sleep(Duration::from_secs(2)).await;
            Ok::<_, CriError>(1)
        };
        assert_eq!(measured.around(call("RunPodSandbox"), slow).await, Ok(1));
        let failed = async { Err::<(), _>(CriError::not_found("StopContainer", "c")) };
        measured.around(call("StopContainer"), failed).await.unwrap_err();
        let hanging = std::future::pending::<Result<(), CriError>>();
        let given_up = measured.around(call("PullImage"), hanging);
        timeout(Duration::from_secs(3), given_up).await.unwrap_err();
        let ours = async { Ok::<_, CriError>(()) };
        measured.around(call("something new"), ours).await.unwrap();
        let calls = measured.metrics.runtime_calls.snapshot();
        let calls: Vec<_> = calls.iter().map(|(name, it)| (*name, it.count, it.sum)).collect();
        let expected =
            [("pull_image", 1, 3.0), ("run_podsandbox", 1, 2.0), ("stop_container", 1, 0.0)];
        assert_eq!(calls, expected);
        assert_eq!(measured.metrics.runtime_errors.snapshot(), [("stop_container", 1)].into());
    }

    #[test]
    fn every_call_of_the_runtime_has_an_operation() {
        // The names as the attribute of the seam makes them of the methods.
        let source = include_str!("../../../cri/src/runtime.rs");
        let written =
            source.lines().filter_map(|line| line.split_once("call = \"")?.1.split('"').next());
        let methods = source
            .lines()
            .filter_map(|line| line.trim().strip_prefix("async fn ")?.split('(').next());
        let capitals = |name: &str| {
            let word = |word: &str| format!("{}{}", word[..1].to_uppercase(), &word[1..]);
            name.split('_').map(word).collect::<String>()
        };
        let renamed = ["info", "list_pod_sandboxes", "container_events"];
        let methods = methods.filter(|name| !renamed.contains(name)).map(capitals);
        let mut names: Vec<String> = written.map(str::to_owned).chain(methods).collect();
        names.sort();
        let known: Vec<&str> = RUNTIME_OPERATIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(known, names);
    }
}
