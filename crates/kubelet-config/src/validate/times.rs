//! Validation of durations.

use std::time::Duration;

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;
use crate::go_duration::GoDuration;

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    not_negative(kubelet, found);
    bounds(kubelet, found);
    images(kubelet, found);
    shutdown(kubelet, found);
}

/// Waiting times; the Go kubelet accepts negative ones and then does not wait, or never acts.
fn not_negative(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let authorization = &kubelet.authorization.webhook;
    let rows = [
        ("syncFrequency", kubelet.sync_frequency),
        ("fileCheckFrequency", kubelet.file_check_frequency),
        ("httpCheckFrequency", kubelet.http_check_frequency),
        ("streamingConnectionIdleTimeout", kubelet.streaming_connection_idle_timeout),
        ("nodeStatusUpdateFrequency", kubelet.node_status_update_frequency),
        ("nodeStatusReportFrequency", kubelet.node_status_report_frequency),
        ("imageMinimumGCAge", kubelet.image_minimum_gc_age),
        ("imageMaximumGCAge", kubelet.image_maximum_gc_age),
        ("cpuManagerReconcilePeriod", kubelet.cpu_manager_reconcile_period),
        ("runtimeRequestTimeout", kubelet.runtime_request_timeout),
        ("evictionPressureTransitionPeriod", kubelet.eviction_pressure_transition_period),
        ("authentication.webhook.cacheTTL", kubelet.authentication.webhook.cache_ttl),
        ("authorization.webhook.cacheAuthorizedTTL", authorization.cache_authorized_ttl),
        ("authorization.webhook.cacheUnauthorizedTTL", authorization.cache_unauthorized_ttl),
    ];
    for (path, span) in rows.into_iter().filter(|(_, span)| span.is_negative()) {
        found.wrong(path, format!("{span} is negative; write a duration such as 20s"));
    }
}

fn bounds(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let millisecond = Duration::from_millis(1);
    check_within(found, "cpuCFSQuotaPeriod", kubelet.cpu_cfs_quota_period, millisecond, SECOND);
    let longest = Duration::from_secs(300);
    let back_off = kubelet.crash_loop_back_off.max_container_restart_period;
    check_within(found, "crashLoopBackOff.maxContainerRestartPeriod", back_off, SECOND, longest);
    let interval = kubelet.container_log_monitor_interval;
    if interval.or_zero() < 3 * SECOND {
        found.wrong(
            "containerLogMonitorInterval",
            format!("{interval} is too short; it must be 3s or more"),
        );
    }
}

fn check_within(
    found: &mut ProblemCollector,
    path: &str,
    span: GoDuration,
    least: Duration,
    most: Duration,
) {
    if !span.length().is_some_and(|length| (least..=most).contains(&length)) {
        let spelled = oarsman_core::duration::spell;
        let bounds = format!("between {} and {}", spelled(least), spelled(most));
        found.wrong(path, format!("{span} is out of bounds; it must be {bounds}"));
    }
}

fn images(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let (least, most) = (kubelet.image_minimum_gc_age, kubelet.image_maximum_gc_age);
    if !most.or_zero().is_zero() && most.or_zero() <= least.or_zero() {
        found.wrong(
            "imageMaximumGCAge",
            format!(
                "{most} must be longer than imageMinimumGCAge, which is {least}; or 0 for no limit"
            ),
        );
    }
}

fn shutdown(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let (all, critical) =
        (kubelet.shutdown_grace_period, kubelet.shutdown_grace_period_critical_pods);
    for (path, span) in
        [("shutdownGracePeriod", all), ("shutdownGracePeriodCriticalPods", critical)]
    {
        if span.is_negative() || (!span.is_zero() && span.or_zero() < SECOND) {
            found.wrong(path, format!("{span} must be 0, or 1s and more"));
        }
        found.needs_gate(kubelet, path, !span.is_zero(), "GracefulNodeShutdown");
    }
    if critical.or_zero() > all.or_zero() {
        found.wrong(
            "shutdownGracePeriodCriticalPods",
            format!(
                "{critical} is a part of shutdownGracePeriod, which is {all}; it may not be longer"
            ),
        );
    }
    let by_priority = "shutdownGracePeriodByPodPriority";
    let has_grades = !kubelet.shutdown_grace_period_by_pod_priority.is_empty();
    found.needs_gate(kubelet, by_priority, has_grades, "GracefulNodeShutdownBasedOnPodPriority");
    if has_grades && !(all.is_zero() && critical.is_zero()) {
        found.wrong(
            by_priority,
            "cannot be set together with shutdownGracePeriod; leave one of them out",
        );
    }
    for (number, grade) in kubelet.shutdown_grace_period_by_pod_priority.iter().enumerate() {
        let seconds = grade.shutdown_grace_period_seconds;
        if seconds < 0 {
            let field =
                crate::FieldPath::at(by_priority).item(number).key("shutdownGracePeriodSeconds");
            found.wrong_at(field, format!("{seconds} is too little; it must be 0 or more"));
        }
    }
}
