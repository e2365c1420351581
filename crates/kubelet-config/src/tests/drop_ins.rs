//! The order of layers: defaults, then the file, then drop-ins, then flags.

use std::path::Path;

use serde_json::json;

use super::{file_of, flag, load_files};
use crate::{ConfigFile, LoadedConfig};

fn with_drop_in(file: &serde_json::Value, drop_in: &serde_json::Value) -> LoadedConfig {
    load_files(&file_of(file), &[("/etc/conf.d/10-a.conf", &file_of(drop_in))]).unwrap()
}

#[test]
fn later_layers_win_and_flags_come_last() {
    let file =
        file_of(&json!({"maxPods": 1, "port": 1, "healthzPort": 1, "clusterDomain": "file"}));
    let first = file_of(&json!({"maxPods": 2, "port": 2, "healthzPort": 2}));
    let second = file_of(&json!({"maxPods": 3, "port": 3}));
    let text =
        |path, text: &'static str| ConfigFile { path: Path::new(path), bytes: text.as_bytes() };
    let [file, first, second] = [file, first, second].map(|text| &*text.leak());
    let drop_ins = [text("/d/1.conf", first), text("/d/2.conf", second)];
    let flags = [flag("max-pods", "maxPods", json!(4))];
    let loaded = crate::load(Some(text("/f", file)), &drop_ins, &flags).unwrap().configuration;
    assert_eq!((loaded.max_pods, loaded.port, loaded.healthz_port), (4, 3, 2));
    assert_eq!(loaded.cluster_domain, "file");
    assert_eq!(loaded.pods_per_core, 0);
}

#[test]
fn fields_are_merged_lists_are_replaced_and_null_takes_away() {
    let file = json!({
        "clusterDNS": ["10.0.0.1", "10.0.0.2"], "kubeReserved": {"cpu": "1"}, "maxPods": 5,
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
    });
    let drop_in = json!({
        "clusterDNS": ["10.0.0.3"], "kubeReserved": {"memory": "1Gi"}, "maxPods": null,
        "authentication": {"webhook": {"enabled": true}},
    });
    let loaded = with_drop_in(&file, &drop_in).configuration;
    assert_eq!(loaded.cluster_dns, ["10.0.0.3".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(loaded.kube_reserved.len(), 2);
    assert_eq!(loaded.max_pods, 110);
    assert!(loaded.authentication.anonymous.enabled && loaded.authentication.webhook.enabled);
}

#[test]
fn feature_gates_are_merged_by_name_from_everywhere() {
    let file = json!({"featureGates": {"MemoryQoS": true, "QOSReserved": true}});
    let drop_in = file_of(&json!({"featureGates": {"QOSReserved": false, "EventedPLEG": true}}));
    let file = file_of(&file);
    let text =
        |path, text: &'static str| ConfigFile { path: Path::new(path), bytes: text.as_bytes() };
    let flags = [flag("feature-gates", "featureGates", json!({"EventedPLEG": false}))];
    let drop_ins = [text("/d/1.conf", drop_in.leak())];
    let loaded = crate::load(Some(text("/f", file.leak())), &drop_ins, &flags).unwrap();
    let gates = serde_json::to_value(&loaded.configuration.feature_gates).unwrap();
    assert_eq!(gates, json!({"MemoryQoS": true, "QOSReserved": false, "EventedPLEG": false}));
}

#[test]
fn thresholds_of_drop_ins_add_to_those_that_a_file_has_by_default() {
    let loaded = with_drop_in(&json!({}), &json!({"evictionHard": {"memory.available": "1Gi"}}));
    let thresholds = loaded.configuration.eviction_hard;
    assert_eq!(thresholds.len(), 5);
    assert_eq!(thresholds["memory.available"].to_string(), "1Gi");
}

#[test]
fn thresholds_of_a_file_replace_the_usual_ones_unless_it_says_otherwise() {
    let own = json!({"memory.available": "1Gi"});
    let load = |merge: bool| {
        let file = json!({"evictionHard": own, "mergeDefaultEvictionSettings": merge});
        load_files(&file_of(&file), &[]).unwrap().configuration.eviction_hard
    };
    assert_eq!(load(false).len(), 1);
    assert_eq!(load(true).len(), 5);
    assert_eq!(load(true)["memory.available"].to_string(), "1Gi");
}

#[test]
fn without_a_file_there_are_no_thresholds() {
    let loaded = crate::load(None, &[], &[]).unwrap();
    assert!(loaded.configuration.eviction_hard.is_empty());
    assert!(loaded.written().is_empty());
}

#[test]
fn a_drop_in_needs_api_version_and_kind_and_is_named_in_errors() {
    let problems = load_files(&file_of(&json!({})), &[("/d/1.conf", "maxPods: 5\n")]).unwrap_err();
    let said = problems.to_string();
    assert!(said.starts_with("/d/1.conf: apiVersion: is missing"), "{said}");
    let bad = file_of(&json!({"maxPods": -5}));
    let said = load_files(&file_of(&json!({})), &[("/d/1.conf", &bad)]).unwrap_err().to_string();
    assert_eq!(said, "/d/1.conf: maxPods: -5 is too little; it must be 0 or more");
}

#[test]
fn zero_by_a_flag_is_zero() {
    let flags = [flag("registry-burst", "registryBurst", json!(0)), flag("port", "port", json!(0))];
    let said = crate::load(None, &[], &flags).unwrap_err().to_string();
    assert_eq!(said, "--port: port: 0 is out of bounds; it must be between 1 and 65535");
    assert_eq!(crate::load(None, &[], &flags[..1]).unwrap().configuration.registry_burst, 0);
}

#[test]
fn the_map_of_a_flag_replaces_that_of_the_file() {
    let file = file_of(&json!({"kubeReserved": {"cpu": "1", "memory": "1Gi"}}));
    let flags = [flag("kube-reserved", "kubeReserved", json!({"pid": "100"}))];
    let text = ConfigFile { path: Path::new("/f"), bytes: file.as_bytes() };
    let loaded = crate::load(Some(text), &[], &flags).unwrap().configuration;
    assert_eq!(loaded.kube_reserved.keys().collect::<Vec<_>>(), ["pid"]);
}
