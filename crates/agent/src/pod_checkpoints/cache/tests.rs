//! What one pod's lookup leaves of what others found.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::*;

fn pod(namespace: &str) -> Arc<Pod> {
    let text = |text: &str| Some(text.to_owned());
    let metadata = ObjectMeta {
        name: text("p"),
        namespace: text(namespace),
        uid: Some(format!("uid-{namespace}")),
        ..ObjectMeta::default()
    };
    Arc::new(Pod { metadata, ..Pod::default() })
}

/// What a pod finds that is beside these services.
fn beside(services: &[(&str, &str)]) -> Lookup {
    let service = |(namespace, name): &(&str, &str)| {
        let (namespace, name) = (Some((*namespace).to_owned()), Some((*name).to_owned()));
        let metadata = ObjectMeta { namespace, name, ..ObjectMeta::default() };
        Service { metadata, ..Service::default() }
    };
    Lookup { services: Some(services.iter().map(service).collect()), ..Lookup::default() }
}

/// The names of the services that are remembered for the pod of a namespace, as far as it is told of them.
fn restored_lookup(cache: &CheckpointCache, namespace: &str) -> Vec<String> {
    let lookup = cache.restored_lookup(&PodUid::from(format!("uid-{namespace}").as_str())).unwrap();
    let services = lookup.services.unwrap_or_default().into_iter();
    let of_namespace = |service: &Service| {
        [Some(namespace), Some("default")].contains(&service.metadata.namespace.as_deref())
    };
    let name = |service: Service| service.metadata.name.unwrap();
    services.filter(of_namespace).map(name).collect()
}

/// A cache that has loaded what this one wrote.
fn reopened(cache: &CheckpointCache) -> CheckpointCache {
    let mut kept = BTreeMap::new();
    while let Some(CheckpointWrite { name, checkpoint }) = cache.next_write() {
        kept.extend(checkpoint.map(|(bytes, _)| (name, bytes)));
    }
    let reopened = CheckpointCache::default();
    reopened.load(kept);
    reopened
}

/// Row C22 of docs/security.md.
#[test]
fn services_of_one_namespace_leave_those_of_another_remembered() {
    let cache = CheckpointCache::default();
    cache.set_api_pods(&[pod("a"), pod("b")]);
    let [a, b] = ["uid-a", "uid-b"].map(PodUid::from);
    cache.set_lookup(&a, &beside(&[("a", "db"), ("a", "old"), ("default", "kubernetes")]));
    cache.set_lookup(&b, &beside(&[("b", "web"), ("default", "kubernetes")]));
    cache.set_lookup(&a, &beside(&[("a", "db"), ("default", "kubernetes")]));
    let after_restart = reopened(&cache);
    assert_eq!(restored_lookup(&after_restart, "a"), ["db", "kubernetes"]);
    assert_eq!(restored_lookup(&after_restart, "b"), ["web", "kubernetes"]);
    assert!(cache.next_write().is_none());
    cache.set_lookup(&b, &beside(&[("b", "web"), ("default", "kubernetes")]));
    assert!(cache.next_write().is_none(), "nothing has changed");
}

#[test]
fn services_of_a_namespace_without_pods_are_forgotten() {
    let cache = CheckpointCache::default();
    cache.set_api_pods(&[pod("a"), pod("b")]);
    cache.set_lookup(&PodUid::from("uid-a"), &beside(&[("a", "db")]));
    cache.set_lookup(&PodUid::from("uid-b"), &beside(&[("b", "web"), ("default", "kubernetes")]));
    cache.set_api_pods(&[pod("b")]);
    let lookup = {
        let after_restart = reopened(&cache);
        after_restart.restored_lookup(&PodUid::from("uid-b")).unwrap()
    };
    assert_eq!(lookup.services.unwrap().len(), 2);
}
