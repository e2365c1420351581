//! What the JSON of a pod says and what it does not.
//!
//! In the API's own types most fields cannot tell a zero from nothing: an empty text, a zero, a
//! `false` and an empty list are all dropped when the object is written again. Fields that do
//! tell them apart are few and listed here. Amounts of resources may come as numbers.
//! All of them are normalised before decoding, so that later code handles one form only.

use serde_json::{Map, Value};

use super::error::{Errors, FieldError};
use super::path::Path;
use crate::quantity::Quantity;

/// Fields whose zero means something other than their absence. A port may be a name, and an empty
/// name is none.
const KEEP_ZERO: [&str; 54] = [
    "activeDeadlineSeconds",
    "allowPrivilegeEscalation",
    "apiGroup",
    "automountServiceAccountToken",
    "blockOwnerDeletion",
    "cachingMode",
    "controller",
    "defaultMode",
    "deletionGracePeriodSeconds",
    "enableServiceLinks",
    "expirationSeconds",
    "fsGroup",
    "fsGroupChangePolicy",
    "gmsaCredentialSpec",
    "gmsaCredentialSpecName",
    "hostProcess",
    "hostUsers",
    "hostnameOverride",
    "initiatorName",
    "localhostProfile",
    "lun",
    "maxExpirationSeconds",
    "minDomains",
    "mode",
    "mountPropagation",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "optional",
    "podGroupName",
    "port",
    "preemptionPolicy",
    "priority",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "recursiveReadOnly",
    "resourceClaimName",
    "resourceClaimTemplateName",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "runAsUserName",
    "runtimeClassName",
    "seLinuxChangePolicy",
    "service",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "stopSignal",
    "storageClassName",
    "supplementalGroupsPolicy",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
    "volumeAttributesClassName",
    "volumeMode",
];

/// The same for fields whose name is also used where a zero says nothing: the field that holds
/// the object, and the field in it.
const KEEP_ZERO_WITHIN: [(&str, &str); 13] = [
    ("azureDisk", "fsType"),
    ("azureDisk", "kind"),
    ("azureDisk", "readOnly"),
    ("clusterTrustBundle", "name"),
    ("clusterTrustBundle", "signerName"),
    ("containers", "restartPolicy"),
    ("csi", "fsType"),
    ("csi", "readOnly"),
    ("dataSourceRef", "namespace"),
    ("ephemeralContainers", "restartPolicy"),
    ("hostPath", "type"),
    ("initContainers", "restartPolicy"),
    ("options", "value"),
];

/// Fields that hold a person's own keys and values.
const FREE_MAPS: [&str; 9] = [
    "annotations",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "overhead",
    "requests",
    "userAnnotations",
    "volumeAttributes",
];

/// Maps of amounts, and single amounts.
const QUANTITY_MAPS: [&str; 3] = ["limits", "overhead", "requests"];
const QUANTITIES: [&str; 2] = ["divisor", "sizeLimit"];

/// Turns amounts given as numbers into text, which is what typed objects hold.
pub(super) fn write_numbers_as_quantities(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| {
            if QUANTITIES.contains(&name.as_str()) {
                number_to_text(field);
            } else if QUANTITY_MAPS.contains(&name.as_str()) {
                field
                    .as_object_mut()
                    .into_iter()
                    .flat_map(Map::values_mut)
                    .for_each(number_to_text);
            } else if !is_free_map(name, field) {
                write_numbers_as_quantities(field);
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(write_numbers_as_quantities),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn number_to_text(amount: &mut Value) {
    if amount.is_number() {
        *amount = Value::String(amount.to_string());
    }
}

/// Drops from a pod's JSON what says nothing, and writes amounts in shortest form.
pub(super) fn settle(pod: &mut Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    for part in ["metadata", "spec"] {
        if let Some(value) = pod.get_mut(part) {
            settle_within(part, &Path::root(part), value, &mut errors);
        }
    }
    errors.into_list()
}

fn settle_within(holder: &str, at: &Path, value: &mut Value, errors: &mut Errors) {
    match value {
        Value::Object(fields) => {
            for (name, field) in &mut *fields {
                settle_field(name, &at.child(name), field, errors);
            }
            fields.retain(|name, field| !is_nothing(holder, name, field));
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                settle_within(holder, &at.index(i), item, errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn settle_field(name: &str, at: &Path, field: &mut Value, errors: &mut Errors) {
    if QUANTITIES.contains(&name) {
        shorten(at, field, errors);
    } else if QUANTITY_MAPS.contains(&name) {
        for (resource, amount) in field.as_object_mut().into_iter().flatten() {
            shorten(&at.key(resource), amount, errors);
        }
    } else if !is_free_map(name, field) {
        settle_within(name, at, field, errors);
    }
}

fn shorten(at: &Path, amount: &mut Value, errors: &mut Errors) {
    match amount.as_str().map(Quantity::parse) {
        Some(Ok(quantity)) => *amount = Value::String(quantity.to_string()),
        Some(Err(why)) => errors.invalid(at, amount.clone(), why.to_string()),
        None => {}
    }
}

fn is_nothing(holder: &str, name: &str, field: &Value) -> bool {
    match field {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && is_free_map(name, field),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            is_zero(field)
                && !KEEP_ZERO.contains(&name)
                && !KEEP_ZERO_WITHIN.contains(&(holder, name))
        }
    }
}

fn is_zero(scalar: &Value) -> bool {
    scalar == false || scalar == "" || scalar.as_i64() == Some(0)
}

/// A driver's `options` are a map, a resolver's are a list.
fn is_free_map(name: &str, field: &Value) -> bool {
    FREE_MAPS.contains(&name) || (name == "options" && field.is_object())
}

#[cfg(test)]
mod tests {
    use super::{settle, write_numbers_as_quantities};
    use serde_json::json;

    #[test]
    fn a_zero_is_dropped_unless_it_has_a_meaning() {
        let mut pod = json!({
            "metadata": { "labels": { "empty": "" }, "annotations": {}, "namespace": "" },
            "spec": {
                "hostNetwork": false,
                "priority": 0,
                "restartPolicy": "",
                "nodeName": null,
                "tolerations": [],
                "containers": [{ "restartPolicy": "", "args": [""], "stdin": false }],
                "volumes": [
                    { "csi": { "readOnly": false }, "emptyDir": {} },
                    { "nfs": { "readOnly": false }, "flexVolume": { "options": { "a": "" } } },
                ],
            },
        });
        assert_eq!(settle(&mut pod), []);
        let settled = json!({
            "metadata": { "labels": { "empty": "" } },
            "spec": {
                "priority": 0,
                "containers": [{ "restartPolicy": "", "args": [""] }],
                "volumes": [
                    { "csi": { "readOnly": false }, "emptyDir": {} },
                    { "nfs": {}, "flexVolume": { "options": { "a": "" } } },
                ],
            },
        });
        assert_eq!(pod, settled);
    }

    #[test]
    fn an_amount_may_be_a_number_and_is_written_in_shortest_form() {
        let mut pod = json!({ "spec": {
            "overhead": { "cpu": 0.25 },
            "containers": [{ "resources": { "limits": { "cpu": 1, "memory": "1024Mi" } } }],
            "volumes": [{ "emptyDir": { "sizeLimit": 0 } }],
        }});
        write_numbers_as_quantities(&mut pod);
        assert_eq!(settle(&mut pod), []);
        let settled = json!({ "spec": {
            "overhead": { "cpu": "250m" },
            "containers": [{ "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } }],
            "volumes": [{ "emptyDir": { "sizeLimit": "0" } }],
        }});
        assert_eq!(pod, settled);
    }
}
