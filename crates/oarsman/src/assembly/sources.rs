//! Where the agent's pods come from.

use std::sync::Arc;

use anyhow::{Context, Result};
use oarsman_agent::seams::Seams;
use oarsman_agent::{Book, PodSets, sources};
use oarsman_core::sources::Source;

use crate::settings::Settings;

/// Everything the settings name; an agent without any source would take all pods for orphans.
pub(super) fn all(
    settings: &Settings,
    seams: &Seams,
    book: &Arc<Book>,
) -> Result<Vec<(Source, PodSets)>> {
    let (from, node) = (&settings.sources, settings.node_name.as_str());
    let mut all = Vec::new();
    if let Some(path) = &from.files {
        all.push((Source::File, sources::files(path, node, from.rescan, book)));
    }
    if let Some(url) = &from.url {
        let network = Arc::clone(&seams.network);
        let pods = sources::url(url, from.url_headers.clone(), from.fetch, node, network, book);
        all.push((Source::Http, pods.with_context(|| format!("--manifest-url {url}"))?));
    }
    // Pods that another kubelet started from the same manifests go on under the UIDs they have.
    let adopting =
        |(source, pods)| (source, sources::adopting(source, pods, Arc::clone(&seams.runtime)));
    Ok(all.into_iter().map(adopting).collect())
}
