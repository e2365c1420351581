//! Validation of eviction thresholds. The Go kubelet makes most of these checks only when it starts.

use std::collections::BTreeMap;

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;
use crate::field_path::FieldPath;
use crate::suggestion::suggestion;
use crate::threshold::ThresholdValue;

const SIGNALS: [&str; 9] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
    "allocatableMemory.available",
];

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    thresholds("evictionHard", &kubelet.eviction_hard, false, found);
    thresholds("evictionSoft", &kubelet.eviction_soft, false, found);
    thresholds("evictionMinimumReclaim", &kubelet.eviction_minimum_reclaim, true, found);
    for (signal, period) in &kubelet.eviction_soft_grace_period {
        let field = FieldPath::at("evictionSoftGracePeriod").key(signal);
        check_signal(signal, &field, found);
        if period.is_negative() {
            found.wrong_at(
                field,
                format!("{period} is negative; write how long the signal must last"),
            );
        }
    }
    for signal in kubelet.eviction_soft.keys() {
        if !kubelet.eviction_soft_grace_period.contains_key(signal) {
            let missing = "has no grace period; write one for it into evictionSoftGracePeriod";
            found.wrong_at(FieldPath::at("evictionSoft").key(signal), missing);
        }
    }
}

fn thresholds(
    path: &str,
    thresholds: &BTreeMap<String, ThresholdValue>,
    may_be_nothing: bool,
    found: &mut ProblemCollector,
) {
    for (signal, threshold) in thresholds {
        let field = FieldPath::at(path).key(signal);
        check_signal(signal, &field, found);
        let is_nothing = matches!(threshold, ThresholdValue::Amount(amount) if amount.is_zero());
        if threshold.is_out_of_bounds() || (is_nothing && !may_be_nothing) {
            let fix =
                "write an amount above nothing such as 500Mi, or a percentage; 0% switches it off";
            found.wrong_at(field, format!("{threshold} is no amount to be short of; {fix}"));
        }
    }
}

fn check_signal(signal: &str, field: &FieldPath, found: &mut ProblemCollector) {
    if !SIGNALS.contains(&signal) {
        let meant = suggestion(signal, SIGNALS);
        let all = SIGNALS.join(", ");
        found.wrong_at(field.clone(), format!("is no signal{meant}; write one of {all}"));
    }
}
