//! Checks manifests by reading them as `oarsman run` would.

use std::sync::Arc;

use oarsman_agent::sources::ManifestProblem;
use oarsman_agent::sources::manifest_set::read_once;
use oarsman_net::SystemNetwork;

use super::finding::Finding;

const CHECK: &str = "manifests";

/// The findings about the manifests at these paths and URLs.
pub(super) async fn read(places: &[String], node: &str) -> Vec<Finding> {
    if places.is_empty() {
        return Vec::new();
    }
    match read_once(places, node, Arc::new(SystemNetwork)).await {
        Err(wrong) => wrong.iter().map(|problem| to_finding(problem, Finding::problem)).collect(),
        Ok(manifest_set) => {
            let odd =
                manifest_set.warnings().iter().map(|problem| to_finding(problem, Finding::warning));
            let names: Vec<&str> =
                manifest_set.pods().iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
            let fine = Finding::ok(CHECK, format!("would run {}", names.join(", ")));
            odd.chain([fine]).collect()
        }
    }
}

fn to_finding(
    problem: &ManifestProblem,
    as_finding: fn(&'static str, String, String) -> Finding,
) -> Finding {
    let ManifestProblem { place, why } = problem;
    as_finding(CHECK, format!("{place}: {why}"), format!("edit {place}"))
}
