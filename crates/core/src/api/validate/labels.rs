//! Labels and the selectors that ask for them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::names;
use crate::api::error::Errors;
use crate::api::path::Path;

type Labels = BTreeMap<String, String>;

/// Labels of an object, or wanted of one.
pub(super) fn check_labels(at: &Path, labels: Option<&Labels>, errors: &mut Errors) {
    for (key, value) in labels.into_iter().flatten() {
        check_key(at, key, errors);
        errors.invalid_for(at, value, names::label_value(value));
    }
}

/// The key of a label.
pub(super) fn check_key(at: &Path, key: &str, errors: &mut Errors) {
    errors.invalid_for(at, key, names::qualified_name(key));
}

/// A selector, where there is one.
pub(super) fn check_selector(at: &Path, selector: Option<&LabelSelector>, errors: &mut Errors) {
    let Some(selector) = selector else { return };
    check_labels(&at.child("matchLabels"), selector.match_labels.as_ref(), errors);
    let at = at.child("matchExpressions");
    for (i, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        check_requirement(&at.index(i), requirement, errors);
    }
}

fn check_requirement(at: &Path, requirement: &LabelSelectorRequirement, errors: &mut Errors) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let values_at = at.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            errors.required(&values_at, "In and NotIn need values");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.forbidden(&values_at, "Exists and DoesNotExist take no values");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        unknown => {
            errors.invalid(&at.child("operator"), unknown, "use In, NotIn, Exists or DoesNotExist");
        }
    }
    check_key(&at.child("key"), &requirement.key, errors);
    check_values(&values_at, values, errors);
}

/// Values of a label, each at its index.
pub(super) fn check_values(at: &Path, values: &[String], errors: &mut Errors) {
    for (i, value) in values.iter().enumerate() {
        errors.invalid_for(&at.index(i), value, names::label_value(value));
    }
}
