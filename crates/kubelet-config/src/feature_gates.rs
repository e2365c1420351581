//! Features that can be switched on and off, as Kubernetes 1.36 has them.

mod table;

use std::collections::BTreeMap;

use crate::field_path::FieldPath;
use crate::problem::Problem;
use crate::suggestion::suggestion;

use table::GATES;

/// How far along a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FeatureStage {
    Alpha,
    Beta,
    /// Done, or on its way out.
    GaOrDeprecated,
    /// The same, and nobody may switch it any more.
    LockedToDefault,
}

/// Names that stand for all features of a stage.
const GROUPS: [(&str, FeatureStage); 2] =
    [("AllAlpha", FeatureStage::Alpha), ("AllBeta", FeatureStage::Beta)];

/// Whether a feature is on, as somebody switched it or by default. One that nobody knows is off.
pub fn is_enabled(switched: &BTreeMap<String, bool>, name: &str) -> bool {
    let Some((_, by_default, stage)) = GATES.iter().find(|(gate, ..)| *gate == name) else {
        return false;
    };
    let group = GROUPS.iter().find(|(_, of)| of == stage);
    let by_group = group.and_then(|(group, _)| switched.get(*group));
    *switched.get(name).or(by_group).unwrap_or(by_default)
}

/// What is wrong with the switches.
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
