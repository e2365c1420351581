//! When pods are evicted. The Go kubelet finds out about most of this only when it starts.

use std::collections::BTreeMap;

use super::Findings;
use crate::amounts::Threshold;
use crate::field::Field;
use crate::fields::KubeletConfiguration;
use crate::nearest::suggestion;

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

pub(super) fn judge(kubelet: &KubeletConfiguration, found: &mut Findings) {
    thresholds("evictionHard", &kubelet.eviction_hard, false, found);
    thresholds("evictionSoft", &kubelet.eviction_soft, false, found);
    thresholds("evictionMinimumReclaim", &kubelet.eviction_minimum_reclaim, true, found);
    for (signal, period) in &kubelet.eviction_soft_grace_period {
        let field = Field::at("evictionSoftGracePeriod").key(signal);
        known(signal, &field, found);
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
            found.wrong_at(Field::at("evictionSoft").key(signal), missing);
        }
    }
}

fn thresholds(
    path: &str,
    thresholds: &BTreeMap<String, Threshold>,
    may_be_nothing: bool,
    found: &mut Findings,
) {
    for (signal, threshold) in thresholds {
        let field = Field::at(path).key(signal);
        known(signal, &field, found);
        let is_nothing = matches!(threshold, Threshold::Amount(amount) if amount.is_zero());
        if threshold.is_out_of_bounds() || (is_nothing && !may_be_nothing) {
            let fix =
                "write an amount above nothing such as 500Mi, or a percentage; 0% switches it off";
            found.wrong_at(field, format!("{threshold} is no amount to be short of; {fix}"));
        }
    }
}

fn known(signal: &str, field: &Field, found: &mut Findings) {
    if !SIGNALS.contains(&signal) {
        let meant = suggestion(signal, SIGNALS);
        let all = SIGNALS.join(", ");
        found.wrong_at(field.clone(), format!("is no signal{meant}; write one of {all}"));
    }
}
