//! Writes the configuration of an agent on a rig, which works on any test machine.

use serde_json::{Map, Value, json};

use super::KubeletPaths;
use crate::control_plane::ControlPlane;
use crate::rig::Rig;

/// The file's text, with `settings` over these defaults. JSON is YAML, too.
pub(super) fn text(
    rig: &Rig,
    plane: &ControlPlane,
    paths: &KubeletPaths,
    settings: &Map<String, Value>,
) -> String {
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": plane.node_address().to_string(),
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": plane.authority() },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": rig.cgroup_parent(),
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": rig.endpoint(),
        // How full the machine's disks are must not matter to the tests.
        "evictionHard": {
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
            "memory.available": "10Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
        },
        "failCgroupV1": false,
        "failSwapOn": false,
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "makeIPTablesUtilChains": false,
        "podLogsDir": rig.pod_logs(),
        "staticPodPath": paths.manifests.path(),
        // The default directory would be made on the machine itself.
        "volumePluginDir": paths.root.join("volume-plugins"),
    });
    if let Value::Object(fields) = &mut config {
        fields.extend(settings.clone());
    }
    format!("{config:#}\n")
}
