//! Restart policies and rules of containers, and what a resize restarts.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule};

use super::context::PodValidationContext;
use crate::api::error::Errors;
use crate::api::path::Path;

const POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const ACTIONS: [&str; 2] = ["Restart", "RestartAllContainers"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
const RESIZE_POLICIES: [&str; 2] = ["NotRequired", "RestartContainer"];

/// Policy and rules of a container.
pub(super) fn check(at: &Path, container: &Container, errors: &mut Errors) {
    let rules = container.restart_policy_rules.as_deref().unwrap_or_default();
    match &container.restart_policy {
        Some(policy) => errors.check_supported(&at.child("restartPolicy"), policy, &POLICIES),
        None if rules.is_empty() => {}
        None => require_policy(at, errors),
    }
    let at = at.child("restartPolicyRules");
    if rules.len() > MAX_RULES {
        errors.too_many(&at, rules.len(), MAX_RULES);
    }
    for (i, rule) in rules.iter().enumerate() {
        check_rule(&at.index(i), rule, errors);
    }
}

/// Policy and rules of an init container that is no sidecar: without a policy its rules are not
/// even looked at, and no resize restarts it.
pub(super) fn check_init(at: &Path, container: &Container, errors: &mut Errors) {
    if container.restart_policy.is_some() {
        check(at, container, errors);
    } else if container.restart_policy_rules.is_some() {
        require_policy(at, errors);
    }
    for (i, policy) in container.resize_policy.iter().flatten().enumerate() {
        if policy.restart_policy == "RestartContainer" {
            let at = at.child("resizePolicy").index(i).child("restartPolicy");
            errors.invalid(&at, "RestartContainer", "only a sidecar may restart for a resize");
        }
    }
}

fn require_policy(at: &Path, errors: &mut Errors) {
    errors.required(&at.child("restartPolicy"), "rules need a policy for what they do not cover");
}

fn check_rule(at: &Path, rule: &ContainerRestartRule, errors: &mut Errors) {
    errors.check_supported(&at.child("action"), &rule.action, &ACTIONS);
    let at = at.child("exitCodes");
    let Some(exit_codes) = &rule.exit_codes else {
        return errors.required(&at, "a rule is about exit codes");
    };
    errors.check_supported(&at.child("operator"), &exit_codes.operator, &OPERATORS);
    let count = exit_codes.values.as_ref().map_or(0, Vec::len);
    if count > MAX_EXIT_CODES {
        errors.too_many(&at.child("values"), count, MAX_EXIT_CODES);
    }
}

/// What happens to a container when its resources change. The API server reports these for the
/// list as a whole.
pub(super) fn check_resize_policies(
    at: &Path,
    container: &Container,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for (i, policy) in container.resize_policy.iter().flatten().enumerate() {
        if !seen.insert(&policy.resource_name) {
            errors.duplicate(&at.index(i), &policy.resource_name);
        }
        errors.check_choice(at, &policy.resource_name, &RESIZABLE);
        errors.check_choice(at, &policy.restart_policy, &RESIZE_POLICIES);
        if around.restart_policy() == "Never" && policy.restart_policy != "NotRequired" {
            let detail = "a pod that never restarts can only say NotRequired";
            errors.invalid(at, policy.restart_policy.as_str(), detail);
        }
    }
}
