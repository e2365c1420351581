//! A panic while an object is refreshed: it is counted, the refresh is started again, and the pod gets what it refers to.

use oarsman_core::trust_bundle::TrustBundles;
use oarsman_sync::{TaskName, TaskPanics};

use super::super::ProjectionGates;

use super::*;

/// A pod with a ConfigMap and a token.
fn with_map_and_token() -> Pod {
    let token = json!({ "serviceAccountToken": { "path": "token", "expirationSeconds": 3600 } });
    let bundle =
        json!({ "clusterTrustBundle": { "path": "ca.pem", "name": "ca", "optional": true } });
    let certificate =
        json!({ "podCertificate": { "signerName": "acme/ca", "keyType": "ED25519" } });
    let volumes = json!([
        { "name": "v", "configMap": { "name": "m" } },
        { "name": "t", "projected": { "sources": [token, bundle, certificate] } },
    ]);
    let mut pod = pod("a", &volumes);
    pod.spec.as_mut().unwrap().service_account_name = Some("robot".to_owned());
    pod
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_panics_is_counted_and_started_again() {
    let rows = [
        ("clustertrustbundles", TaskName::TrustBundleWatch),
        ("ns/podcertificaterequests", TaskName::PodCertificateRefresh),
        ("v1beta1/podcertificaterequests", TaskName::PodCertificateWatch),
        ("configmaps", TaskName::ObjectRefresh),
        ("/token", TaskName::TokenRefresh),
        ("services", TaskName::ServiceWatch),
    ];
    for (path, task) in rows {
        let server = FakeApiServer::default();
        server.put("/api/v1/namespaces/ns/configmaps", map("hello"));
        server.panic_at(path);
        let panics = TaskPanics::default();
        server.put("/api/v1/nodes", json!({ "metadata": { "name": "n1", "uid": "node-1" } }));
        let account = json!({ "metadata": { "name": "robot", "namespace": "ns", "uid": "sa-1" } });
        server.put("/api/v1/namespaces/ns/serviceaccounts", account);
        let projections = ProjectionGates { trust_bundles: true, pod_certificates: true };
        let settings =
            ObjectSettings { panics: panics.clone(), projections, ..ObjectSettings::default() };
        let objects = objects_with(&server, settings);
        let found = objects.lookup(&with_map_and_token()).await.unwrap();
        assert_eq!((found.config_maps.len(), found.tokens.len()), (1, 1), "{task}");
        assert_eq!(found.trust_bundles, Some(Ok(TrustBundles::new())), "{task}");
        assert_eq!(panics.counts(), [(task, 1)].into());
    }
}
