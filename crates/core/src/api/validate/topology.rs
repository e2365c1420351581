//! How pods are spread over nodes.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use super::{affinity, labels};
use crate::api::error::Errors;
use crate::api::path::Path;

const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const NODE_POLICIES: [&str; 2] = ["Honor", "Ignore"];

pub(super) fn check(at: &Path, constraints: &[TopologySpreadConstraint], errors: &mut Errors) {
    for (i, constraint) in constraints.iter().enumerate() {
        let at = at.index(i);
        check_one(&at, constraint, errors);
        let same = |other: &TopologySpreadConstraint| {
            other.topology_key == constraint.topology_key
                && other.when_unsatisfiable == constraint.when_unsatisfiable
        };
        if constraints[i + 1..].iter().any(same) {
            let pair =
                format!("{{{}, {}}}", constraint.topology_key, constraint.when_unsatisfiable);
            errors.duplicate(&at.child("{topologyKey, whenUnsatisfiable}"), &pair);
        }
    }
}

fn check_one(at: &Path, constraint: &TopologySpreadConstraint, errors: &mut Errors) {
    check_positive(&at.child("maxSkew"), constraint.max_skew, errors);
    errors.check_present(&at.child("topologyKey"), &constraint.topology_key);
    let action = constraint.when_unsatisfiable.as_str();
    errors.check_supported(&at.child("whenUnsatisfiable"), action, &ACTIONS);
    if let Some(domains) = constraint.min_domains {
        let at = at.child("minDomains");
        check_positive(&at, domains, errors);
        if action != "DoNotSchedule" {
            errors.invalid(&at, domains, "goes with whenUnsatisfiable DoNotSchedule");
        }
    }
    let policies = [
        ("nodeAffinityPolicy", &constraint.node_affinity_policy),
        ("nodeTaintsPolicy", &constraint.node_taints_policy),
    ];
    for (field, policy) in policies {
        policy.iter().for_each(|p| errors.check_supported(&at.child(field), p, &NODE_POLICIES));
    }
    let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
    let selector = constraint.label_selector.as_ref();
    affinity::check_label_keys(at, keys, &[], selector, errors);
    labels::check_selector(&at.child("labelSelector"), selector, errors);
}

fn check_positive(at: &Path, number: i32, errors: &mut Errors) {
    if number <= 0 {
        errors.invalid(at, number, "must be at least 1");
    }
}
