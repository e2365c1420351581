//! What a node without a cluster knows of objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use oarsman_core::references::{ObjectChange, ObjectKind, ObjectName};

use super::*;

fn name(name: &str) -> FullName {
    FullName { name: name.to_owned(), namespace: "default".to_owned() }
}

fn config_map(value: &str) -> Arc<ConfigMap> {
    let data = BTreeMap::from([("key".to_owned(), value.to_owned())]);
    Arc::new(ConfigMap { data: Some(data), ..ConfigMap::default() })
}

#[tokio::test]
async fn given_objects_are_found_and_their_changes_reported_one_by_one() {
    let mut objects = Lookup::default();
    objects.config_maps.insert(name("stays"), config_map("a"));
    objects.config_maps.insert(name("changes"), config_map("a"));
    objects.secrets.insert(name("goes"), Arc::default());
    let given = watch::Sender::new(objects.clone());
    let cluster = Standalone::with(given.subscribe());
    assert_eq!(cluster.lookup(&Pod::default()).await.unwrap(), objects);
    let mut changes = cluster.object_changes();
    objects.config_maps.insert(name("changes"), config_map("b"));
    objects.config_maps.insert(name("comes"), config_map("a"));
    objects.secrets.clear();
    given.send_replace(objects.clone());
    let want = [
        (ObjectKind::ConfigMap, "changes"),
        (ObjectKind::ConfigMap, "comes"),
        (ObjectKind::Secret, "goes"),
    ];
    for (kind, called) in want {
        assert_eq!(
            changes.next().await,
            Some(ObjectChange::from(ObjectName { kind, name: name(called) }))
        );
    }
    assert_eq!(cluster.lookup(&Pod::default()).await.unwrap(), objects);
    let nothing = Standalone::default().lookup(&Pod::default()).await.unwrap();
    assert_eq!(nothing, Lookup::default());
}
