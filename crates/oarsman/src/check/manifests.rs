//! Checks manifests by reading them as `oarsman run` would.

use std::sync::Arc;

use oarsman_agent::sources::Remark;
use oarsman_agent::sources::bundle::read_once;
use oarsman_net::SystemNetwork;

use super::finding::Finding;

const CHECK: &str = "manifests";

/// The findings about the manifests at these paths and URLs.
pub(super) async fn read(places: &[String], node: &str) -> Vec<Finding> {
    if places.is_empty() {
        return Vec::new();
    }
    match read_once(places, node, Arc::new(SystemNetwork)).await {
        Err(wrong) => wrong.iter().map(|remark| to_finding(remark, Finding::problem)).collect(),
        Ok(bundle) => {
            let odd = bundle.warnings().iter().map(|remark| to_finding(remark, Finding::warning));
            let names: Vec<&str> =
                bundle.pods().iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
            let fine = Finding::ok(CHECK, format!("would run {}", names.join(", ")));
            odd.chain([fine]).collect()
        }
    }
}

fn to_finding(remark: &Remark, as_finding: fn(&'static str, String, String) -> Finding) -> Finding {
    let Remark { place, why } = remark;
    as_finding(CHECK, format!("{place}: {why}"), format!("edit {place}"))
}
