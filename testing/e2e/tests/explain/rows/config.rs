//! Causes of containers and volumes that cannot be made as specified.

use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::PodManifest;
use serde_json::{Value, json};

use super::{CauseRow, RowContext, forever, of, row};

/// A pod with one volume, mounted at /v.
fn volume(name: &str, source: Value) -> PodManifest {
    let mut volume = json!({ "name": "v" });
    if let (Some(volume), Value::Object(source)) = (volume.as_object_mut(), source) {
        volume.extend(source);
    }
    of(name, forever().mount("v", "/v")).add("volumes", volume)
}

fn secured(name: &str, context: Value) -> PodManifest {
    of(name, forever().with("securityContext", context))
}

pub(super) fn rows(_: &RowContext) -> Vec<CauseRow> {
    let again = "; the next try is in N seconds";
    let host = "Make it so on this machine, or correct path and type of volume v in {place}.";
    let sub_path = json!([{ "name": "v", "mountPath": "/v", "subPathExpr": "$(A)" }]);
    vec![
        row(
            "root",
            secured("root", json!({ "runAsNonRoot": true })),
            ExplanationCause::WouldBeRoot,
            "Container main has runAsNonRoot, and its image {script} runs as root.",
            "Set spec.containers[0].securityContext.runAsUser in {place}, or use an image that gives its user by number.",
        ),
        row(
            "unconfined",
            secured("unconfined", json!({ "seccompProfile": { "type": "Localhost", "localhostProfile": "strict.json" } })),
            ExplanationCause::SeccompMissing,
            &format!("The seccomp profile {{root}}/seccomp/strict.json of container main cannot be read{again}."),
            "Put the profile there, or correct spec.containers[0].securityContext.seccompProfile in {place}.",
        ),
        row(
            "unarmoured",
            secured("unarmoured", json!({ "appArmorProfile": { "type": "Localhost", "localhostProfile": "strict" } })),
            ExplanationCause::Rejected,
            "The node put an end to the pod (AppArmor): Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host.",
            "Make room for it, or change what it asks for in {place}.",
        ),
        row(
            "part",
            of("part", forever().with("volumeMounts", sub_path)).add("volumes", json!({ "name": "v", "emptyDir": {} })),
            ExplanationCause::SubPath,
            "Container main mounts a part of volume v that cannot be had: subPathExpr \"$(A)\" is missing value for A.",
            "Correct subPath or subPathExpr in spec.containers[0].volumeMounts in {place}, or what the volume holds.",
        ),
        row(
            "no-directory",
            volume("no-directory", json!({ "hostPath": { "path": "/no/such", "type": "Directory" } })),
            ExplanationCause::HostPath,
            &format!("Volume v cannot be mounted: /no/such does not exist, and should be a directory{again}."),
            host,
        ),
        row(
            "a-file",
            volume("a-file", json!({ "hostPath": { "path": "/etc/passwd", "type": "Directory" } })),
            ExplanationCause::HostPath,
            &format!("Volume v cannot be mounted: /etc/passwd is not a directory{again}."),
            host,
        ),
        row(
            "unmade",
            volume("unmade", json!({ "hostPath": { "path": "/no/such/file", "type": "FileOrCreate" } })),
            ExplanationCause::VolumeFails,
            &format!("Volume v cannot be made: cannot make /no/such/file: No such file or directory (os error 2){again}."),
            "Mend it on this machine, or correct volume v in {place}.",
        ),
        row(
            "network-disk",
            volume("network-disk", json!({ "iscsi": { "targetPortal": "127.0.0.1:3260", "iqn": "iqn.2026-11.example:x", "lun": 0 } })),
            ExplanationCause::VolumeKind,
            "Volume v is of the kind iscsi, which this agent does not have.",
            "Use emptyDir, hostPath, configMap, secret, downwardAPI, projected, nfs or persistentVolumeClaim for volume v in {place}.",
        ),
        row(
            "no-env-file",
            of("no-env-file", forever().with("env", json!([{ "name": "A", "valueFrom": { "fileKeyRef": { "volumeName": "v", "path": "env", "key": "A" } } }])))
                .add("volumes", json!({ "name": "v", "emptyDir": {} })),
            ExplanationCause::ConfigRefused,
            "Container main cannot be described to the runtime: variable A: no file \"env\" in volume \"v\" (valueFrom.fileKeyRef).",
            "Correct it in {place}.",
        ),
    ]
}
