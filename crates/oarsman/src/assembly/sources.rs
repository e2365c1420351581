//! The sources of the agent's pods: manifest files, a URL, the API server, and the arguments of `oarsman run`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use oarsman_agent::seams::Seams;
use oarsman_agent::sources::bundle::{Bundle, Periods};
use oarsman_agent::sources::{ManifestUrl, PodSource};
use oarsman_agent::{Book, sources};
use oarsman_core::sources::Source;

use crate::settings::AgentSettings;

/// How often the manifests of `oarsman run` are read again, besides when inotify reports a change.
const PERIODS: Periods =
    Periods { rescan: Duration::from_secs(20), fetch: Duration::from_secs(20) };

/// All sources of the settings, and the bundle of `oarsman run`. At least one: an agent without sources would remove all pods as orphans.
pub(super) fn all(
    settings: &AgentSettings,
    seams: &Seams,
    book: &Arc<Book>,
    bundle: Option<Bundle>,
) -> Result<Vec<PodSource>> {
    let (from, mut all) = (&settings.sources, Vec::new());
    if let Some(bundle) = bundle {
        let book = Arc::clone(book);
        all.push(PodSource::new(Source::File, move || bundle.follow(PERIODS, &book)));
    }
    if let Some(path) = from.files.clone() {
        let (node, rescan, book) = (settings.node_name.clone(), from.rescan, Arc::clone(book));
        let open = move || sources::files(&path, &node, rescan, &book);
        all.push(PodSource::new(Source::File, open));
    }
    if let Some(url) = &from.url {
        let (node, network) = (settings.node_name.clone(), Arc::clone(&seams.network));
        let manifests = ManifestUrl::new(url, from.url_headers.clone(), node, network)
            .with_context(|| format!("--manifest-url {url}"))?;
        let (fetch, book) = (from.fetch, Arc::clone(book));
        all.push(PodSource::new(Source::Http, move || manifests.follow(fetch, &book)));
    }
    // Pods that another kubelet started from the same manifests keep their UIDs.
    let adopting = |source: PodSource| {
        let runtime = Arc::clone(&seams.runtime);
        source.map(move |source, sets| sources::adopting(source, sets, Arc::clone(&runtime)))
    };
    Ok(all.into_iter().map(adopting).collect())
}
