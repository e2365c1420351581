//! The feature gates of Kubernetes 1.36.

mod table;

use std::collections::BTreeMap;

use crate::field_path::FieldPath;
use crate::problem::Problem;
use crate::suggestion::suggestion;

use table::GATES;

/// The maturity of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FeatureStage {
    Alpha,
    Beta,
    /// Generally available, or deprecated.
    GaOrDeprecated,
    /// The same, and it can no longer be switched.
    LockedToDefault,
}

/// Names that stand for all features of a stage.
const GROUPS: [(&str, FeatureStage); 2] =
    [("AllAlpha", FeatureStage::Alpha), ("AllBeta", FeatureStage::Beta)];

/// Whether a feature is on, as configured or by default. An unknown feature is off.
pub fn is_enabled(switched: &BTreeMap<String, bool>, name: &str) -> bool {
    let Some((_, by_default, stage)) = GATES.iter().find(|(gate, ..)| *gate == name) else {
        return false;
    };
    let group = GROUPS.iter().find(|(_, of)| of == stage);
    let by_group = group.and_then(|(group, _)| switched.get(*group));
    *switched.get(name).or(by_group).unwrap_or(by_default)
}

/// The maturity of a feature as metrics tell it: `ALPHA`, `BETA`, or nothing once it is generally available or deprecated.
pub fn feature_stage(name: &str) -> &'static str {
    match GATES.iter().find(|(gate, ..)| *gate == name) {
        Some((_, _, FeatureStage::Alpha)) => "ALPHA",
        Some((_, _, FeatureStage::Beta)) => "BETA",
        Some((_, _, FeatureStage::GaOrDeprecated | FeatureStage::LockedToDefault)) | None => "",
    }
}

/// The problems of configured feature gates.
pub(crate) fn problems(switched: &BTreeMap<String, bool>) -> Vec<Problem> {
    switched.iter().filter_map(|(name, to)| problem(name, *to)).collect()
}

fn problem(name: &str, to: bool) -> Option<Problem> {
    let field = FieldPath::at("featureGates").key(name);
    if GROUPS.iter().any(|(group, _)| *group == name) {
        return None;
    }
    match GATES.iter().find(|(gate, ..)| *gate == name) {
        Some((_, on, FeatureStage::LockedToDefault)) if *on != to => Some(Problem::of(
            field,
            format!("{to} is no longer possible: this feature is always {on}; remove the line"),
        )),
        Some(_) => None,
        None => {
            let meant = suggestion(name, GATES.iter().map(|(gate, ..)| *gate));
            let gone = "is no feature of Kubernetes 1.36";
            Some(Problem::of(field, format!("{gone}{meant}; correct it, or remove the line")))
        }
    }
}
