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
    let operator = toleration.operator.as_deref().unwrap_or_default();
    match &toleration.key {
        Some(key) => labels::check_key(&at.child("key"), key, errors),
        None if operator == "Exists" => {}
        None => {
            let detail = "without a key it is Exists, for all taints";
            errors.invalid(&at.child("operator"), operator, detail);
        }
    }
    let value = toleration.value.as_deref().unwrap_or_default();
    check_value(&at.child("operator"), operator, value, errors);
    check_effect(&at.child("effect"), toleration, errors);
}

fn check_value(at: &Path, operator: &str, value: &str, errors: &mut Errors) {
    match operator {
        "" | "Equal" => {
            let complaints = names::label_value(value);
            if !complaints.is_empty() {
                errors.invalid(at, value, complaints.join("; "));
            }
        }
        "Exists" if !value.is_empty() => errors.invalid(at, value, "Exists takes no value"),
        operator => errors.check_supported(at, operator, &OPERATORS),
    }
}

fn check_effect(at: &Path, toleration: &Toleration, errors: &mut Errors) {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
        errors.invalid(at, effect, "tolerationSeconds go with NoExecute");
    }
    if !effect.is_empty() {
        errors.check_supported(at, effect, &EFFECTS);
    }
}
