//! Defaults that depend on other fields, and fields that contradict each other.

use serde_json::{Value, json};

use super::{file_of, load_file};

#[test]
fn images_are_pulled_side_by_side_when_several_may_be() {
    let serialised =
        |fields: Value| load_file(&file_of(&fields)).unwrap().configuration.serialize_image_pulls;
    assert!(serialised(json!({})));
    assert!(serialised(json!({"maxParallelImagePulls": 1})));
    assert!(!serialised(json!({"maxParallelImagePulls": 2})));
}

#[test]
fn the_report_frequency_follows_a_configured_update_frequency() {
    let reports = |fields: Value| {
        let loaded = load_file(&file_of(&fields)).unwrap().configuration;
        loaded.node_status_report_frequency.to_string()
    };
    assert_eq!(reports(json!({})), "5m0s");
    assert_eq!(reports(json!({"nodeStatusUpdateFrequency": "20s"})), "20s");
    let both = json!({"nodeStatusUpdateFrequency": "20s", "nodeStatusReportFrequency": "1m"});
    assert_eq!(reports(both), "1m0s");
}

#[test]
fn a_negative_limit_of_processes_is_none() {
    let loaded = load_file(&file_of(&json!({"podPidsLimit": -7}))).unwrap();
    assert_eq!(loaded.configuration.pod_pids_limit, -1);
}

#[test]
fn features_of_a_stage_are_switched_together() {
    let tiers = |gates: Value| {
        let fields = json!({"memoryReservationPolicy": "TieredReservation", "featureGates": gates});
        load_file(&file_of(&fields)).is_ok()
    };
    assert!(!tiers(json!({})));
    assert!(tiers(json!({"MemoryQoS": true})));
    assert!(tiers(json!({"AllAlpha": true})));
    assert!(!tiers(json!({"AllAlpha": true, "MemoryQoS": false})));
}

#[test]
fn contradicting_fields_are_refused_with_the_fix() {
    let rows = [
        (
            json!({"maxParallelImagePulls": 3, "serializeImagePulls": true}),
            "maxParallelImagePulls",
            "set that to false",
        ),
        (json!({"systemCgroups": "/system"}), "systemCgroups", "cgroupRoot"),
        (json!({"cgroupsPerQOS": false}), "enforceNodeAllocatable[0]", "cgroupsPerQOS: true"),
        (
            json!({"enforceNodeAllocatable": ["none", "pods"]}),
            "enforceNodeAllocatable[0]",
            "stands alone",
        ),
        (json!({"enforceNodeAllocatable": ["pods", "pods"]}), "enforceNodeAllocatable[1]", "twice"),
        (
            json!({"enforceNodeAllocatable": ["kube-reserved"]}),
            "enforceNodeAllocatable[0]",
            "kubeReservedCgroup",
        ),
        (
            json!({"enforceNodeAllocatable": ["system-reserved", "system-reserved-compressible"], "systemReservedCgroup": "/s"}),
            "enforceNodeAllocatable",
            "cannot both",
        ),
        (
            json!({"reservedSystemCPUs": "0", "kubeReservedCgroup": "/k"}),
            "reservedSystemCPUs",
            "kubeReservedCgroup",
        ),
        (json!({"tlsCertFile": "/c"}), "tlsPrivateKeyFile", "is missing"),
        (
            json!({"enableSystemLogQuery": true, "enableSystemLogHandler": false}),
            "enableSystemLogQuery",
            "enableSystemLogHandler",
        ),
        (
            json!({"evictionSoft": {"memory.available": "1Gi"}}),
            "evictionSoft[\"memory.available\"]",
            "evictionSoftGracePeriod",
        ),
        (
            json!({"preloadedImagesVerificationAllowlist": ["a"]}),
            "preloadedImagesVerificationAllowlist",
            "NeverVerifyAllowlistedImages",
        ),
        (
            json!({"logging": {"format": "json", "vmodule": [{"filePattern": "a", "verbosity": 1}]}}),
            "logging.vmodule",
            "logging.format: text",
        ),
        (
            json!({"logging": {"options": {"text": {"splitStream": true}}}}),
            "logging.options.text.splitStream",
            "LoggingAlphaOptions",
        ),
        (
            json!({"shutdownGracePeriod": "30s", "shutdownGracePeriodByPodPriority": [{"priority": 1, "shutdownGracePeriodSeconds": 1}]}),
            "shutdownGracePeriodByPodPriority",
            "leave one of them out",
        ),
        (
            json!({"reservedMemory": [{"numaNode": 1, "limits": {"memory": "1"}}, {"numaNode": 1, "limits": {"memory": "2"}}]}),
            "reservedMemory[1].limits.memory",
            "twice for NUMA node 1",
        ),
        (
            json!({"registerWithTaints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]}),
            "registerWithTaints[0].timeAdded",
            "leave it out",
        ),
        (
            json!({"registerWithTaints": [{"key": "k", "effect": "Never"}]}),
            "registerWithTaints[0].effect",
            "NoSchedule",
        ),
        (
            json!({"featureGates": {"MemoryQos": true}}),
            "featureGates.MemoryQos",
            "did you mean MemoryQoS?",
        ),
        (json!({"featureGates": {"NodeSwap": false}}), "featureGates.NodeSwap", "always true"),
        (json!({"podLogsDir": "/var/log/pöds"}), "podLogsDir", "ASCII"),
        (
            json!({"evictionHard": {"memory.availble": "1Gi"}}),
            "evictionHard[\"memory.availble\"]",
            "did you mean memory.available?",
        ),
    ];
    for (fields, field, fix) in rows {
        let Err(problems) = load_file(&file_of(&fields)) else { panic!("{fields} was taken") };
        assert_eq!(problems.0.len(), 1, "{problems}");
        assert_eq!(problems.0[0].field.to_string(), field, "{problems}");
        assert!(problems.0[0].message.contains(fix), "{problems}");
    }
}
