//! Checks that every cause is provoked by a scenario.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::scenario::ScenarioContext;

use super::{hangs, manifests, network, pulls, rows, runtime, stops};

/// Causes that cannot be provoked here, each with the reason.
const EXCUSED: &[(ExplanationCause, &str)] = &[
    (
        ExplanationCause::ImageUnsigned,
        "only CRI-O demands signatures, and only its answers have that reason",
    ),
    (
        ExplanationCause::ObjectMissing,
        "a manifest that lacks what it refers to is refused before a pod comes of it; with an API server it can",
    ),
    (ExplanationCause::KeyMissing, "the same"),
    (
        ExplanationCause::HostPortTaken,
        "admission rejects the second pod of a port; only pods that ran before the agent began can have it",
    ),
    (
        ExplanationCause::FirewallDrops,
        "only the embedded runtime tells of firewalls; crates/runtime/tests/contract_on_embedded provokes what it tells",
    ),
    (
        ExplanationCause::ImageNotImported,
        "only the embedded runtime has no registries, and containerd runs these scenarios",
    ),
    (
        ExplanationCause::AppArmor,
        "admission rejects such a pod on a machine without AppArmor, as this one is",
    ),
    (
        ExplanationCause::UserNamespace,
        "the usual handler of containerd has user namespaces, and without an API server there are no runtime classes",
    ),
    (
        ExplanationCause::Starting,
        "it is what is said for a moment while nothing is known, and lasts no longer than that",
    ),
];
/// The least number of causes that must be provoked.
const LEAST: usize = 30;

pub(super) async fn every_cause_is_provoked_or_excused(_: &ScenarioContext) -> Result<()> {
    let special = [
        hangs::CAUSES,
        manifests::CAUSES,
        network::CAUSES,
        pulls::CAUSES,
        runtime::CAUSES,
        stops::CAUSES,
    ];
    let special = special.into_iter().flatten().copied();
    let provoked: BTreeSet<ExplanationCause> = rows::causes().into_iter().chain(special).collect();
    let excused: BTreeSet<ExplanationCause> = EXCUSED.iter().map(|(cause, _)| *cause).collect();
    let known: BTreeSet<ExplanationCause> = ExplanationCause::ALL.iter().copied().collect();
    let missing: Vec<_> = known.difference(&provoked).filter(|it| !excused.contains(it)).collect();
    ensure!(missing.is_empty(), "nothing makes these happen: {missing:?}");
    let both: Vec<_> = provoked.intersection(&excused).collect();
    ensure!(both.is_empty(), "these are excused and yet happen: {both:?}");
    ensure!(provoked.len() >= LEAST, "only {} causes are provoked", provoked.len());
    Ok(())
}
