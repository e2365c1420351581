//! Taints a pod puts up with.

use k8s_openapi::api::core::v1::Toleration;

use super::{labels, names};
use crate::api::error::Errors;
use crate::api::path::Path;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
/// Two more that compare numbers exist, behind a gate that is off.
const OPERATORS: [&str; 2] = ["Equal", "Exists"];

pub(super) fn check(at: &Path, tolerations: &[Toleration], errors: &mut Errors) {
    for (i, toleration) in tolerations.iter().enumerate() {
        check_one(&at.index(i), toleration, errors);
    }
}

fn check_one(at: &Path, toleration: &Toleration, errors: &mut Errors) {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let (key, operator) = (text(&toleration.key), text(&toleration.operator));
    let (value, effect) = (text(&toleration.value), text(&toleration.effect));
    let (operator_at, effect_at) = (at.child("operator"), at.child("effect"));
    if !key.is_empty() {
        labels::check_key(&at.child("key"), &key, errors);
    } else if operator != "Exists" {
        errors.invalid(
            &operator_at,
            operator.as_str(),
            "without a key it is Exists, for all taints",
        );
    }
    if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
        errors.invalid(&effect_at, effect.as_str(), "tolerationSeconds go with NoExecute");
    }
    match operator.as_str() {
        "" | "Equal" => {
            let complaints = names::label_value(&value);
            if !complaints.is_empty() {
                errors.invalid(&operator_at, value, complaints.join("; "));
            }
        }
        "Exists" if !value.is_empty() => {
            errors.invalid(&operator_at, value, "Exists takes no value");
        }
        operator => errors.check_supported(&operator_at, operator, &OPERATORS),
    }
    if !effect.is_empty() {
        errors.check_supported(&effect_at, &effect, &EFFECTS);
    }
}
