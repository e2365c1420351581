//! Services, for the environment variables of containers. All namespaces are watched, since a node may not select by namespace and
//! pods of any namespace may arrive; of each service only what the variables need is kept.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::{Pod, Service, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Client};
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_sync::{TaskName, TaskPanics, restarted};
use tokio_util::task::AbortOnDropHandle;

use super::super::watch::{Watch, WatchProfile, WatchUpdate};
use super::cached_value::CachedValue;
use crate::{ClusterError, Result};

/// A service without an address of its own has no variables.
const WITH_ADDRESS: &str = "spec.clusterIP!=None";

/// All services by name; a reader keeps its snapshot.
type ServicesByName = Arc<BTreeMap<FullName, Service>>;

pub(super) struct ServiceCache {
    client: Client,
    panics: TaskPanics,
    /// Started with the first lookup.
    watch: OnceLock<(CachedValue<ServicesByName>, AbortOnDropHandle<()>)>,
}

impl ServiceCache {
    pub(super) fn new(client: Client, panics: TaskPanics) -> Self {
        Self { client, panics, watch: OnceLock::new() }
    }

    /// The services of a pod's namespace, and `default/kubernetes`. There may be no API server for a static pod, so it does not wait.
    pub(super) async fn for_pod(&self, pod: &Pod) -> Result<Option<Vec<Service>>> {
        let all = self.all();
        let known = match pod.is_static() {
            true => all.get(),
            false => Some(all.wait(list_timeout).await?),
        };
        let namespace = pod.full_name().namespace;
        let is_told = |name: &FullName| {
            name.namespace == namespace
                || (name.namespace == "default" && name.name == "kubernetes")
        };
        let told = |all: ServicesByName| {
            all.iter()
                .filter(|(name, _)| is_told(name))
                .map(|(_, service)| service.clone())
                .collect()
        };
        Ok(known.map(told))
    }

    fn all(&self) -> &CachedValue<ServicesByName> {
        let (cached_value, _) = self.watch.get_or_init(|| {
            let cached_value = CachedValue::new();
            let (client, value) = (self.client.clone(), cached_value.clone());
            let task = restarted(TaskName::ServiceWatch, self.panics.clone(), move || {
                watch(client.clone(), value.clone())
            });
            (cached_value, AbortOnDropHandle::new(tokio::spawn(task)))
        });
        cached_value
    }
}

async fn watch(client: Client, cached_value: CachedValue<ServicesByName>) {
    let (fields, object) = (WITH_ADDRESS.to_owned(), "services".to_owned());
    let mut watch =
        Watch::<Service>::new(Api::all(client), fields, object, WatchProfile::LONG_LIVED);
    let mut all = BTreeMap::new();
    loop {
        let heard = match watch.try_next().await {
            Ok(heard) => heard,
            Err(error) => {
                cached_value.set_failed(error);
                continue;
            }
        };
        for updates in heard {
            match updates {
                WatchUpdate::Listed(services) => all = services.iter().map(named).collect(),
                WatchUpdate::Changed(service) => all.extend([named(&service)]),
                WatchUpdate::Deleted(service) => drop(all.remove(&named(&service).0)),
            }
        }
        // A new service takes effect with the next start of a container: no change is published.
        cached_value.set(Arc::new(all.clone()));
    }
}

/// The parts of a service that the variables need.
fn named(service: &Service) -> (FullName, Service) {
    let ObjectMeta { name, namespace, .. } = service.metadata.clone();
    let full = FullName {
        name: name.clone().unwrap_or_default(),
        namespace: namespace.clone().unwrap_or_default(),
    };
    let spec = service.spec.as_ref().map(|spec| ServiceSpec {
        cluster_ip: spec.cluster_ip.clone(),
        ports: spec.ports.clone(),
        ..ServiceSpec::default()
    });
    let metadata = ObjectMeta { name, namespace, ..ObjectMeta::default() };
    (full, Service { metadata, spec, status: None })
}

fn list_timeout(limit: std::time::Duration) -> ClusterError {
    let why = format!("no answer within {limit:?}");
    ClusterError::Unavailable { call: "list", object: "services".to_owned(), why }
}
