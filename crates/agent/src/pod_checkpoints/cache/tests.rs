//! What one pod's lookup leaves of what others found.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use oarsman_core::ids::FullName;

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

/// Objects of namespace `a`, with a ConfigMap for each name.
fn with_maps(names: &[&str]) -> Lookup {
    let map = |name: &&str| {
        let (namespace, name) = ("a".to_owned(), (*name).to_owned());
        let metadata = ObjectMeta {
            namespace: Some(namespace.clone()),
            name: Some(name.clone()),
            ..ObjectMeta::default()
        };
        let data = BTreeMap::from([("key".to_owned(), "x".repeat(1 << 20))]);
        let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
        (FullName { namespace, name }, Arc::new(map))
    };
    Lookup { config_maps: names.iter().map(map).collect(), ..Lookup::default() }
}

/// The bytes of all checkpoints that are to be written, by name.
fn written(cache: &CheckpointCache) -> BTreeMap<String, Option<usize>> {
    let size =
        |write: CheckpointWrite| (write.name, write.checkpoint.map(|(bytes, _)| bytes.len()));
    std::iter::from_fn(|| cache.next_write()).map(size).collect()
}

/// Row H2 of docs/security.md.
#[test]
fn objects_are_kept_once_for_all_pods_and_not_written_with_a_status() {
    let pods: Vec<Arc<Pod>> = (0..50)
        .map(|n| {
            let mut pod = Arc::unwrap_or_clone(pod("a"));
            pod.metadata.uid = Some(format!("uid-{n}"));
            Arc::new(pod)
        })
        .collect();
    let cache = CheckpointCache::default();
    cache.set_api_pods(&pods);
    let lookup = with_maps(&["one", "two"]);
    for pod in &pods {
        cache.set_lookup(&pod.uid(), &lookup.clone());
    }
    for map in lookup.config_maps.values() {
        assert_eq!(Arc::strong_count(map), 2, "shared with the cache");
    }
    let cache = reopened(&cache);
    let restored = pods.iter().map(|pod| cache.restored_lookup(&pod.uid()).unwrap());
    let restored: Vec<Lookup> = restored.collect();
    assert!(restored.iter().all(|found| found.config_maps == lookup.config_maps));
    for map in restored[0].config_maps.values() {
        assert_eq!(Arc::strong_count(map), 51, "shared after a restart, too");
    }
    assert_eq!(written(&cache), BTreeMap::new());

    let status = PodStatus { phase: Some("Running".to_owned()), ..PodStatus::default() };
    cache.set_status(&pods[7].uid(), &status);
    let after_status = written(&cache);
    let bytes: usize = after_status.values().flatten().sum();
    assert!(after_status.len() == 1 && bytes < 4096, "{after_status:?}");
}

#[test]
fn an_object_that_no_pod_has_found_any_more_is_removed() {
    let cache = CheckpointCache::default();
    let a = pod("a");
    cache.set_api_pods(&[Arc::clone(&a), pod("b")]);
    cache.set_lookup(&a.uid(), &with_maps(&["one", "two"]));
    written(&cache);
    cache.set_lookup(&a.uid(), &with_maps(&["two"]));
    assert_eq!(written(&cache)["object-0"], None);
    assert_eq!(reopened(&cache).restored_lookup(&a.uid()), None, "its objects are not there");
    cache.set_api_pods(&[pod("b")]);
    assert_eq!(written(&cache).into_iter().filter(|(_, bytes)| bytes.is_none()).count(), 2);
}
