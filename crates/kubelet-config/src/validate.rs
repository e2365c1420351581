//! What may not be, though every field by itself can be read.
//!
//! The rules are those of the Go kubelet, its own validation and what it finds out only when it starts. Everything that is
//! wrong is said at once, each with the field, the value and what to do.

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

use crate::field::Field;
use crate::fields::KubeletConfiguration;
use crate::gates;
use crate::problem::Problem;

/// Everything that is wrong with a configuration.
pub(crate) fn validate(configuration: &KubeletConfiguration) -> Vec<Problem> {
    let mut found = Findings(gates::problems(&configuration.feature_gates));
    let judges = [
        numbers::judge,
        times::judge,
        server::judge,
        machine::judge,
        cpus::judge,
        reserved::judge,
        eviction::judge,
        logs::judge,
        paths::judge,
    ];
    for judge in judges {
        judge(configuration, &mut found);
    }
    found.0
}

/// What was found so far.
struct Findings(Vec<Problem>);

impl Findings {
    /// Something is wrong with a field.
    fn wrong(&mut self, path: &str, message: impl Into<String>) {
        self.wrong_at(Field::at(path), message);
    }

    fn wrong_at(&mut self, field: Field, message: impl Into<String>) {
        self.0.push(Problem::of(field, message));
    }

    /// The value of a field has to lie between two others.
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

    /// A feature has to be on for a field to be set.
    fn needs_gate(&mut self, kubelet: &KubeletConfiguration, path: &str, is_set: bool, gate: &str) {
        if is_set && !gates::is_enabled(&kubelet.feature_gates, gate) {
            self.wrong(
                path,
                format!(
                    "needs the feature gate {gate}; switch it on in featureGates, or leave this out"
                ),
            );
        }
    }
}
