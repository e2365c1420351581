//! Where the agent's pods come from.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_agent::seams::Seams;
use oarsman_agent::sources::bundle::{Bundle, Periods};
use oarsman_agent::{Book, PodSets, sources};
use oarsman_core::sources::Source;

use crate::settings::Settings;

/// How often is looked at what a person handed over, besides when something tells of a change.
const PERIODS: Periods =
    Periods { rescan: Duration::from_secs(20), fetch: Duration::from_secs(20) };

/// Everything the settings name, and what a person handed over; an agent without any source would take all pods for orphans.
pub(super) fn all(
    settings: &Settings,
    seams: &Seams,
    book: &Arc<Book>,
    bundle: Option<Bundle>,
) -> Result<Vec<(Source, PodSets)>> {
    let (from, node) = (&settings.sources, settings.node_name.as_str());
    let handed_over = bundle.map(|bundle| (Source::File, bundle.follow(PERIODS, book)));
    let mut all: Vec<_> = handed_over.into_iter().collect();
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
