//! Validation of a configuration whose fields could all be decoded.
//!
//! The rules are those of the Go kubelet: of its validation, and of checks that it makes only when it starts. All problems are reported at once,
//! each with the field, the value and what to do.

mod cpus;
mod eviction;
mod logs;
mod machine;
mod numbers;
mod paths;
mod reserved;
mod server;
mod times;

use std::fmt::Display;

use crate::configuration::KubeletConfiguration;
use crate::feature_gates;
use crate::field_path::FieldPath;
use crate::problem::Problem;

/// All problems of a configuration.
pub(crate) fn validate(configuration: &KubeletConfiguration) -> Vec<Problem> {
    let mut found = ProblemCollector(feature_gates::problems(&configuration.feature_gates));
    let validators = [
        numbers::validate,
        times::validate,
        server::validate,
        machine::validate,
        cpus::validate,
        reserved::validate,
        eviction::validate,
        logs::validate,
        paths::validate,
    ];
    for validator in validators {
        validator(configuration, &mut found);
    }
    found.0
}

/// The problems found so far.
struct ProblemCollector(Vec<Problem>);

impl ProblemCollector {
    /// Adds a problem of a field.
    fn wrong(&mut self, path: &str, message: impl Into<String>) {
        self.wrong_at(FieldPath::at(path), message);
    }

    fn wrong_at(&mut self, field: FieldPath, message: impl Into<String>) {
        self.0.push(Problem::of(field, message));
    }

    /// Checks that a value lies between two bounds.
    fn between<T: PartialOrd + Display + Copy>(&mut self, path: &str, value: T, least: T, most: T) {
        if value < least || value > most {
            self.wrong(
                path,
                format!("{value} is out of bounds; it must be between {least} and {most}"),
            );
        }
    }

    fn at_least<T: PartialOrd + Display + Copy>(&mut self, path: &str, value: T, least: T) {
        if value < least {
            self.wrong(path, format!("{value} is too little; it must be {least} or more"));
        }
    }

    /// Checks that the feature gate is on if the field is set.
    fn needs_gate(&mut self, kubelet: &KubeletConfiguration, path: &str, is_set: bool, gate: &str) {
        if is_set && !feature_gates::is_enabled(&kubelet.feature_gates, gate) {
            self.wrong(
                path,
                format!(
                    "needs the feature gate {gate}; switch it on in featureGates, or leave this out"
                ),
            );
        }
    }
}
