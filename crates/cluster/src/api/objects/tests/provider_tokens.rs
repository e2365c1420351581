//! Service accounts and tokens for credential providers.

use oarsman_core::ids::{FullName, PodUid};

use super::*;
use crate::ClusterError;

const ACCOUNTS: &str = "/api/v1/namespaces/ns/serviceaccounts";

fn robot_pod(uid: &str) -> Pod {
    let mut pod = pod(uid, &json!([]));
    pod.spec.as_mut().unwrap().service_account_name = Some("robot".to_owned());
    pod
}

#[tokio::test(start_paused = true)]
async fn an_account_is_read_as_it_is_now() {
    let server = FakeApiServer::default();
    let objects = objects(&server);
    let name = FullName { name: "robot".to_owned(), namespace: "ns".to_owned() };
    let gone = objects.service_account(&name).await.unwrap_err();
    assert!(matches!(gone, ClusterError::Gone { .. }), "{gone}");
    for role in ["reader", "writer"] {
        let metadata = json!({ "name": "robot", "namespace": "ns", "uid": "sa-1", "annotations": { "role": role } });
        server.put(ACCOUNTS, json!({ "metadata": metadata }));
        let found = objects.service_account(&name).await.unwrap();
        assert_eq!(found.metadata.annotations.unwrap()["role"], role);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_for_a_provider_is_bound_to_the_pod_and_requested_when_it_is_needed() {
    let server = FakeApiServer::default();
    let (objects, pod) = (objects(&server), robot_pod("a"));
    let token = async |account: &str| objects.provider_token(&pod, account, "reg.io").await;
    let first = token("sa-1").await.unwrap();
    assert_eq!(token("sa-1").await.unwrap(), first);
    let bound = json!({ "apiVersion": "v1", "kind": "Pod", "name": "web-a", "uid": "a" });
    let spec =
        json!({ "boundObjectRef": bound, "expirationSeconds": 3600, "audiences": ["reg.io"] });
    assert_eq!(server.asked(), [spec]);
    assert!(server.log().contains(&"token namespaces/ns/serviceaccounts/robot/token".to_owned()));
    // An account that was created again is another one.
    let second = token("sa-2").await.unwrap();
    assert_ne!(second, first);
    server.asked();
    seconds(2800).await;
    assert_eq!(server.asked().len(), 0, "nothing is refreshed by itself");
    seconds(200).await;
    let third = token("sa-2").await.unwrap();
    assert_ne!(third, second);
    server.fail_with(503);
    seconds(3000).await;
    assert_eq!(token("sa-2").await.unwrap(), third, "it is not expired");
    seconds(700).await;
    assert!(token("sa-2").await.is_err());
    server.recover();
    token("sa-2").await.unwrap();
    server.asked();
    objects.forget(&PodUid::from("a"));
    token("sa-2").await.unwrap();
    assert_eq!(server.asked().len(), 1);
}
