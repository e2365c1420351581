//! The sources of the agent's pods: manifest files, a URL, the API server, and the arguments of `oarsman run`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_agent::seams::Seams;
use oarsman_agent::sources::manifest_set::{ManifestSet, PollPeriods};
use oarsman_agent::sources::{ManifestUrl, PodSource};
use oarsman_agent::{ReportStore, sources};
use oarsman_core::sources::Source;

use crate::settings::AgentSettings;

/// How often the manifests of `oarsman run` are read again, besides when inotify reports a change.
const PERIODS: PollPeriods =
    PollPeriods { rescan: Duration::from_secs(20), fetch: Duration::from_secs(20) };

/// All sources of the settings, and the bundle of `oarsman run`. At least one: an agent without sources would remove all pods as orphans.
pub(super) fn all(
    settings: &AgentSettings,
    seams: &Seams,
    report_store: &Arc<ReportStore>,
    manifest_set: Option<ManifestSet>,
) -> Result<Vec<PodSource>> {
    let (from, mut all) = (&settings.sources, Vec::new());
    if let Some(manifest_set) = manifest_set {
        let report_store = Arc::clone(report_store);
        all.push(PodSource::new(Source::File, move || manifest_set.follow(PERIODS, &report_store)));
    }
    if let Some(path) = from.files.clone() {
        let (node, rescan, report_store) =
            (settings.node_name.clone(), from.rescan, Arc::clone(report_store));
        let open = move || sources::pods_from_files(&path, &node, rescan, &report_store);
        all.push(PodSource::new(Source::File, open));
    }
    if let Some(url) = &from.url {
        let (node, network) = (settings.node_name.clone(), Arc::clone(&seams.network));
        let manifests = ManifestUrl::new(url, from.url_headers.clone(), node, network)
            .with_context(|| format!("--manifest-url {url}"))?;
        let (fetch, report_store) = (from.fetch, Arc::clone(report_store));
        all.push(PodSource::new(Source::Http, move || manifests.follow(fetch, &report_store)));
    }
    // Pods that another kubelet started from the same manifests keep their UIDs.
    let with_adopted_uids = |source: PodSource| {
        let runtime = Arc::clone(&seams.runtime);
        source
            .map(move |source, sets| sources::with_adopted_uids(source, sets, Arc::clone(&runtime)))
    };
    Ok(all.into_iter().map(with_adopted_uids).collect())
}
