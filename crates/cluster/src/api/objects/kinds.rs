//! The kinds of objects that are kept by name.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::{Api, Client, Resource, ResourceExt};
use oarsman_core::ids::FullName;
use oarsman_core::references::{ObjectChange, ObjectKind, ObjectName};

/// An object that pods refer to by its name.
pub(super) trait ApiObject:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + PartialEq + Send + Sync + 'static
{
    /// Its name in errors.
    const RESOURCE_NAME: &'static str;

    /// The API of its namespace.
    fn api(client: Client, namespace: &str) -> Api<Self>;

    /// The change that is published when it changes.
    fn change(name: FullName) -> ObjectChange;

    /// Whether it is marked immutable.
    fn is_immutable(&self) -> bool;

    /// The same without metadata that is not used, which may be large.
    fn without_extra_metadata(mut self) -> Self {
        let (name, namespace, uid) = (self.name_any(), self.namespace(), self.uid());
        *self.meta_mut() = ObjectMeta { name: Some(name), namespace, uid, ..ObjectMeta::default() };
        self
    }
}

/// The name of a cluster-scoped object.
pub(super) fn cluster_scoped_name(name: &str) -> FullName {
    FullName { name: name.to_owned(), namespace: String::new() }
}

impl ApiObject for ConfigMap {
    const RESOURCE_NAME: &'static str = "configmap";

    fn api(client: Client, namespace: &str) -> Api<Self> {
        Api::namespaced(client, namespace)
    }

    fn change(name: FullName) -> ObjectChange {
        ObjectName { kind: ObjectKind::ConfigMap, name }.into()
    }

    fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }
}

impl ApiObject for Secret {
    const RESOURCE_NAME: &'static str = "secret";

    fn api(client: Client, namespace: &str) -> Api<Self> {
        Api::namespaced(client, namespace)
    }

    fn change(name: FullName) -> ObjectChange {
        ObjectName { kind: ObjectKind::Secret, name }.into()
    }

    fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }
}

impl ApiObject for RuntimeClass {
    const RESOURCE_NAME: &'static str = "runtimeclass";

    fn api(client: Client, _: &str) -> Api<Self> {
        Api::all(client)
    }

    fn change(name: FullName) -> ObjectChange {
        ObjectChange::RuntimeClass(name.name)
    }

    /// Its handler is immutable, but it may be deleted and created again with another one.
    fn is_immutable(&self) -> bool {
        false
    }
}
