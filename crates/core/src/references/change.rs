//! Something outside of pods that is not as it was, so that those it concerns look again.

use k8s_openapi::api::core::v1::Pod;

use super::{ObjectName, runtime_class};
use crate::ids::PodUid;
use crate::pod::PodExt;
use crate::trust_bundle::TrustBundleName;

/// What is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectChange {
    /// A ConfigMap or Secret.
    Object(ObjectName),
    /// A runtime class, by its name.
    RuntimeClass(String),
    /// A token of this pod: there is a newer one.
    Token(PodUid),
    /// A certificate of this pod: there is one, a newer one, or none any more.
    PodCertificate(PodUid),
    /// A trust bundle.
    TrustBundle(TrustBundleName),
}

impl ObjectChange {
    /// Whether a pod should look again.
    pub fn concerns(&self, pod: &Pod) -> bool {
        match self {
            Self::Object(object) => object.is_used_by(pod),
            Self::RuntimeClass(class) => runtime_class(pod) == Some(class),
            Self::Token(uid) | Self::PodCertificate(uid) => pod.uid() == *uid,
            Self::TrustBundle(bundle) => bundle.is_used_by(pod),
        }
    }
}

impl From<ObjectName> for ObjectChange {
    fn from(object: ObjectName) -> Self {
        Self::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::FullName;
    use crate::references::ObjectKind;

    #[test]
    fn a_change_concerns_the_pods_that_use_the_object() {
        let volume = json!({ "name": "v", "configMap": { "name": "m" } });
        let spec = json!({ "containers": [], "volumes": [volume], "runtimeClassName": "kata" });
        let metadata = json!({ "name": "web", "namespace": "ns", "uid": "u" });
        let pod: Pod =
            serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap();
        let object = |kind, name: &str| {
            let name = FullName { name: name.to_owned(), namespace: "ns".to_owned() };
            ObjectChange::from(ObjectName { kind, name })
        };
        let rows = [
            (object(ObjectKind::ConfigMap, "m"), true),
            (object(ObjectKind::Secret, "m"), false),
            (ObjectChange::RuntimeClass("kata".to_owned()), true),
            (ObjectChange::RuntimeClass("gvisor".to_owned()), false),
            (ObjectChange::Token("u".into()), true),
            (ObjectChange::Token("other".into()), false),
        ];
        for (change, concerns) in rows {
            assert_eq!(change.concerns(&pod), concerns, "{change:?}");
            assert!(!change.concerns(&Pod::default()), "{change:?}");
        }
    }
}
