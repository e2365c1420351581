//! What a pod refers to, asked for piece by piece each time.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::Api;
use kube::api::ListParams;
use oarsman_core::config::Lookup;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::references::{Kind, references};

use super::{ApiServer, error};
use crate::{ClusterError, Result};

impl ApiServer {
    pub(super) async fn look_up(&self, pod: &Pod) -> Result<Lookup> {
        let namespace = pod.full_name().namespace;
        let failed =
            |error| error::failed("the objects", &ClusterError::pod(&pod.full_name()), &error);
        let services: Api<Service> = Api::all(self.client.clone());
        let with_address = ListParams::default().fields("spec.clusterIP!=None");
        let services = services.list(&with_address).await.map_err(failed)?.items;
        let mut found = Lookup { services: Some(services), ..Lookup::default() };
        for reference in references(pod) {
            let name = FullName { name: reference.name, namespace: namespace.clone() };
            match reference.kind {
                Kind::ConfigMap => {
                    let map = self.of::<ConfigMap>(&namespace).get_opt(&name.name).await;
                    found.config_maps.extend(map.map_err(failed)?.map(|map| (name, map)));
                }
                Kind::Secret => {
                    let secret = self.of::<Secret>(&namespace).get_opt(&name.name).await;
                    found.secrets.extend(secret.map_err(failed)?.map(|secret| (name, secret)));
                }
            }
        }
        Ok(found)
    }
}
