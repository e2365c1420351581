//! Families and samples as text.

use super::*;

#[test]
fn a_family_has_its_help_and_kind_once_before_its_samples() {
    let mut exposition = Exposition::default();
    let mut family =
        exposition.family("kubelet_running_containers", MetricKind::Gauge, "Containers.");
    family.sample(&[("container_state", "running")], 3.0);
    family.sample(&[("container_state", "exited")], 0.5);
    exposition.single("kubelet_running_pods", MetricKind::Counter, "Pods.", 12345678901.0);
    let want = "# HELP kubelet_running_containers Containers.
# TYPE kubelet_running_containers gauge
kubelet_running_containers{container_state=\"running\"} 3
kubelet_running_containers{container_state=\"exited\"} 0.5
# HELP kubelet_running_pods Pods.
# TYPE kubelet_running_pods counter
kubelet_running_pods 12345678901
";
    assert_eq!(exposition.into_text(), want);
}

#[test]
fn a_family_without_samples_is_absent() {
    let mut exposition = Exposition::default();
    exposition.family("kubelet_evictions", MetricKind::Counter, "Evictions.");
    assert_eq!(exposition.into_text(), "");
}

#[test]
fn values_of_labels_are_escaped() {
    let mut exposition = Exposition::default();
    exposition.family("x", MetricKind::Gauge, "X.").sample(&[("a", "q\"b\\n\n")], 1.0);
    assert!(exposition.into_text().ends_with("x{a=\"q\\\"b\\\\n\\n\"} 1\n"));
}

#[test]
fn a_sample_may_have_the_time_of_its_measurement_in_milliseconds() {
    let mut exposition = Exposition::default();
    let at = Timestamp::from_millisecond(1_500).unwrap();
    exposition.family("x", MetricKind::Gauge, "X.").sample_at(&[], f64::NEG_INFINITY, at);
    assert!(exposition.into_text().ends_with("\nx -Inf 1500\n"));
}

#[test]
fn a_histogram_has_its_buckets_with_the_infinite_one_then_sum_and_count() {
    let mut exposition = Exposition::default();
    let found = HistogramSnapshot { buckets: vec![(0.005, 1), (10.0, 2)], count: 3, sum: 61.5 };
    exposition.family("x", MetricKind::Histogram, "X.").histogram(&[("a", "b")], &found);
    let want = "# HELP x X.
# TYPE x histogram
x_bucket{a=\"b\",le=\"0.005\"} 1
x_bucket{a=\"b\",le=\"10\"} 2
x_bucket{a=\"b\",le=\"+Inf\"} 3
x_sum{a=\"b\"} 61.5
x_count{a=\"b\"} 3
";
    assert_eq!(exposition.into_text(), want);
}

#[test]
fn common_labels_come_before_those_of_a_sample() {
    let rows = [
        (&[("id", "/a\"b"), ("pod", "")][..], &[][..], "x{id=\"/a\\\"b\",pod=\"\"} 2 1500\n"),
        (
            &[("id", "/")],
            &[("device", "d"), ("e", "f")],
            "x{id=\"/\",device=\"d\",e=\"f\"} 2 1500\n",
        ),
    ];
    let at = Timestamp::from_millisecond(1_500).unwrap();
    for (common, own, want) in rows {
        let mut exposition = Exposition::default();
        let mut family = exposition.family("x", MetricKind::Gauge, "X.");
        family.sample_of(&CommonLabels::new(common), own, 2.0, at);
        let text = exposition.into_text();
        assert!(text.ends_with(want), "{text}");
    }
}
