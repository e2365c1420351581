//! Claims: read until they are bound, then never again for the same pod.

use oarsman_core::ids::PodUid;

use super::*;
use crate::ClusterError;

const CLAIMS: &str = "/api/v1/namespaces/ns/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn with_claim(uid: &str) -> Pod {
    pod(uid, &json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "disk" } }]))
}

fn claim(phase: &str, uid: &str) -> Value {
    let metadata = json!({ "name": "disk", "namespace": "ns", "uid": uid, "labels": { "a": "b" } });
    json!({ "metadata": metadata, "spec": { "volumeName": "pv" }, "status": { "phase": phase } })
}

fn volume() -> Value {
    let annotations = json!({ "pv.beta.kubernetes.io/gid": "7", "other": "x" });
    let metadata = json!({ "name": "pv", "uid": "pv-1", "annotations": annotations });
    let spec = json!({ "claimRef": { "uid": "claim-1" }, "local": { "path": "/mnt" } });
    json!({ "metadata": metadata, "spec": spec })
}

/// What a lookup asked the server for, and whether it found a claim and a volume.
async fn asked(
    server: &FakeApiServer,
    objects: &ObjectManager,
    pod: &Pod,
) -> (Vec<String>, usize, usize) {
    server.log();
    let found = objects.lookup(pod).await.unwrap();
    let is_about_claims = |line: &String| line.contains("persistentvolume");
    let log = server.log().into_iter().filter(is_about_claims).collect();
    (log, found.claims.len(), found.persistent_volumes.len())
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_read_until_it_is_bound_and_once_for_every_pod() {
    let server = FakeApiServer::default();
    let (objects, pod) = (objects(&server), with_claim("a"));
    let of_claim = "get namespaces/ns/persistentvolumeclaims/disk".to_owned();
    let both = vec![of_claim.clone(), "get persistentvolumes/pv".to_owned()];
    assert_eq!(asked(&server, &objects, &pod).await, (vec![of_claim.clone()], 0, 0));
    server.put(CLAIMS, claim("Pending", "claim-1"));
    assert_eq!(asked(&server, &objects, &pod).await, (vec![of_claim.clone()], 1, 0));
    server.put(CLAIMS, claim("Bound", "claim-1"));
    assert_eq!(asked(&server, &objects, &pod).await, (both.clone(), 1, 0), "no such volume");
    server.put(VOLUMES, volume());
    assert_eq!(asked(&server, &objects, &pod).await, (both.clone(), 1, 1));
    assert_eq!(asked(&server, &objects, &pod).await, (vec![], 1, 1), "bound for good");
    seconds(3600).await;
    assert_eq!(asked(&server, &objects, &pod).await, (vec![], 1, 1), "nothing is polled");
    assert_eq!(asked(&server, &objects, &with_claim("b")).await, (both.clone(), 1, 1));
    objects.forget(&PodUid::from("a"));
    assert_eq!(asked(&server, &objects, &pod).await, (both, 1, 1), "it was forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_volume_of_another_claim_is_not_kept() {
    let server = FakeApiServer::default();
    let (objects, pod) = (objects(&server), with_claim("a"));
    server.put(CLAIMS, claim("Bound", "claim-2"));
    server.put(VOLUMES, volume());
    for _ in 0..2 {
        let (log, ..) = asked(&server, &objects, &pod).await;
        assert_eq!(log.len(), 2, "{log:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_counts_while_the_server_is_away_and_a_refusal_is_tried_again() {
    let server = FakeApiServer::default();
    let (objects, pod) = (objects(&server), with_claim("a"));
    server.put(CLAIMS, claim("Bound", "claim-1"));
    server.put(VOLUMES, volume());
    server.fail_with(403);
    let refused = objects.lookup(&pod).await.unwrap_err();
    assert!(matches!(refused, ClusterError::Refused { .. }), "{refused}");
    let tries = server.log().iter().filter(|line| line.contains("claims")).count();
    assert!(tries > 3, "{tries}");
    server.recover();
    seconds(60).await;
    let found = objects.lookup(&pod).await.unwrap();
    let volume = &found.persistent_volumes["pv"];
    let annotations = volume.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations.keys().collect::<Vec<_>>(), ["pv.beta.kubernetes.io/gid"]);
    server.fail_with(503);
    assert_eq!(objects.lookup(&pod).await.unwrap().persistent_volumes.len(), 1);
}
