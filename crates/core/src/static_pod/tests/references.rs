//! What a static pod may name.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// A pod of that spec, in the form a manifest has.
fn pod(spec: Value) -> Pod {
    let mut manifest = json!({"metadata": {"name": "web"}});
    manifest["spec"] = spec;
    serde_json::from_value(manifest).unwrap()
}

fn with_volume(volume: Value) -> Pod {
    let mut volume = volume;
    volume["name"] = json!("v");
    pod(json!({"containers": [], "volumes": [volume]}))
}

fn with_projection(source: Value) -> Pod {
    let sources = vec![json!({"downwardAPI": {}}), source];
    with_volume(json!({"projected": {"sources": Value::Array(sources)}}))
}

fn with_env(list: &str, part: Value) -> Pod {
    let mut container = part;
    container["name"] = json!("c");
    pod(json!({"containers": [], list: [container]}))
}

fn env_secret() -> Value {
    json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]})
}

fn env_config_map() -> Value {
    json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]})
}

fn refused(pod: &Pod, given: &ProvidedObjects) -> Option<String> {
    check_references(pod, given).err().map(|error| error.to_string())
}

/// Every way to name a Secret called `s`.
fn secrets() -> Vec<(&'static str, Pod)> {
    let login = json!({"name": "s"});
    let iscsi = json!({"iscsi": {"secretRef": login, "iqn": "", "lun": 0, "targetPortal": ""}});
    let scale_io = json!({"scaleIO": {"secretRef": login, "gateway": "", "system": ""}});
    vec![
        ("pull secret", pod(json!({"containers": [], "imagePullSecrets": [login]}))),
        ("env", with_env("containers", env_secret())),
        ("env of init", with_env("initContainers", env_secret())),
        ("env of ephemeral", with_env("ephemeralContainers", env_secret())),
        ("env from", with_env("containers", json!({"envFrom": [{"secretRef": login}]}))),
        ("volume", with_volume(json!({"secret": {"secretName": "s"}}))),
        ("projected", with_projection(json!({"secret": {"name": "s"}}))),
        ("azure", with_volume(json!({"azureFile": {"secretName": "s", "shareName": ""}}))),
        ("cephfs", with_volume(json!({"cephfs": {"secretRef": login, "monitors": []}}))),
        ("cinder", with_volume(json!({"cinder": {"secretRef": login, "volumeID": ""}}))),
        ("flex", with_volume(json!({"flexVolume": {"secretRef": login, "driver": ""}}))),
        ("rbd", with_volume(json!({"rbd": {"secretRef": login, "image": "", "monitors": []}}))),
        ("storageos", with_volume(json!({"storageos": {"secretRef": login}}))),
        ("iscsi", with_volume(iscsi)),
        ("scale io", with_volume(scale_io)),
    ]
}

/// Every way to name a ConfigMap called `m`.
fn config_maps() -> Vec<(&'static str, Pod)> {
    let map = json!({"name": "m"});
    vec![
        ("env", with_env("containers", env_config_map())),
        ("env of init", with_env("initContainers", env_config_map())),
        ("env of ephemeral", with_env("ephemeralContainers", env_config_map())),
        ("env from", with_env("containers", json!({"envFrom": [{"configMapRef": map}]}))),
        ("volume", with_volume(json!({"configMap": map}))),
        ("projected", with_projection(json!({"configMap": map}))),
    ]
}

#[test]
fn a_secret_or_config_map_may_be_named_only_if_it_is_given() {
    let names = |name: &str| BTreeSet::from([name.to_owned()]);
    let given = ProvidedObjects { secrets: names("s"), config_maps: names("m") };
    let swapped = ProvidedObjects { secrets: names("m"), config_maps: names("s") };
    let secrets = secrets().into_iter().map(|(way, pod)| (way, pod, "secrets"));
    let maps = config_maps().into_iter().map(|(way, pod)| (way, pod, "configmaps"));
    for (way, pod, resource) in secrets.chain(maps) {
        let want = Some(format!("static pods may not reference {resource}"));
        assert_eq!(refused(&pod, &ProvidedObjects::default()), want, "{resource} by {way}");
        assert_eq!(refused(&pod, &swapped), want, "{resource} by {way}, another is given");
        assert_eq!(refused(&pod, &given), None, "{resource} by {way}, given");
    }
}

#[test]
fn the_refusal_knows_which_one_is_missing() {
    let (_, pod) = secrets().remove(1);
    let refusal = check_references(&pod, &ProvidedObjects::default()).unwrap_err();
    assert_eq!(refusal.name.as_deref(), Some("s"));
}

#[test]
fn objects_that_cannot_be_provided_beside_a_pod_are_always_refused() {
    let claim = json!({"containers": [], "resourceClaims": [{"name": "gpu"}]});
    let ephemeral = json!({"ephemeral": {}});
    let token = json!({"serviceAccountToken": {"path": "t"}});
    let bundle = json!({"clusterTrustBundle": {"path": "b"}});
    let certificate = json!({"podCertificate": {"signerName": "", "keyType": ""}});
    let gluster = json!({"glusterfs": {"endpoints": "e", "path": "p"}});
    let table = [
        (pod(json!({"containers": [], "serviceAccountName": "sa"})), "serviceaccounts"),
        (pod(claim), "resourceclaims"),
        (with_volume(json!({"csi": {"driver": "d"}})), "csidrivers (via CSI volumes)"),
        (with_volume(gluster), "endpoints (via glusterFS volumes)"),
        (
            with_volume(json!({"persistentVolumeClaim": {"claimName": "c"}})),
            "persistentvolumeclaims",
        ),
        (with_volume(ephemeral), "persistentvolumeclaims (via ephemeral volumes)"),
        (with_projection(token), "serviceaccounts (via projected volumes)"),
        (with_projection(bundle), "clustertrustbundles"),
        (with_projection(certificate), "podcertificates"),
    ];
    for (pod, resource) in table {
        let want = Some(format!("static pods may not reference {resource}"));
        assert_eq!(refused(&pod, &ProvidedObjects::default()), want);
    }
}

#[test]
fn what_is_on_the_machine_may_be_named() {
    let table = [
        manifest(),
        with_volume(json!({"emptyDir": {}})),
        with_volume(json!({"hostPath": {"path": "/"}})),
        with_volume(json!({"downwardAPI": {}})),
        with_volume(json!({"nfs": {"server": "s", "path": "/"}})),
        with_volume(json!({"projected": {"sources": [{"downwardAPI": {}}]}})),
        with_env("containers", json!({"env": [{"name": "A", "value": "plain"}]})),
        pod(json!({"containers": [], "serviceAccountName": "", "resourceClaims": []})),
        Pod::default(),
    ];
    for pod in table {
        assert_eq!(refused(&pod, &ProvidedObjects::default()), None, "{pod:?}");
    }
}
