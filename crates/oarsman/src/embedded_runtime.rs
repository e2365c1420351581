//! Opens the embedded runtime with what this program gives it, for an agent or for `oarsman cri`.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use oarsman_clock::Clock;
use oarsman_cri::Runtime;
use oarsman_demo_image as demo_image;
use oarsman_runtime::{BuiltInImage, EmbeddedRuntime, EmbeddedRuntimeSettings, OciHandler};
use oarsman_sync::TaskPanics;

/// Opens the runtime of a directory, which no other process may have open, with these runtime handlers besides its own.
///
/// # Errors
/// When another process has it, or the machine lacks what the runtime needs.
pub(crate) async fn open(
    directory: &Path,
    handlers: &[OciHandler],
    clock: &Arc<dyn Clock>,
    panics: &TaskPanics,
) -> Result<EmbeddedRuntime> {
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    let settings = EmbeddedRuntimeSettings {
        handlers: handlers.to_vec(),
        panics: panics.clone(),
        built_in_images: vec![BuiltInImage {
            name: demo_image::NAME,
            archive: demo_image::archive,
        }],
        ..EmbeddedRuntimeSettings::new(directory, program)
    };
    EmbeddedRuntime::open(settings, Arc::clone(clock))
        .await
        .with_context(|| format!("cannot open the embedded runtime in {}", directory.display()))
}

/// The bridge and the rules stay while there are pods. A process that ends with pods leaves them running.
pub(crate) async fn remove_unused_network(runtime: &EmbeddedRuntime) {
    let listed = runtime.list_pod_sandboxes(None).await;
    if listed.is_ok_and(|sandboxes| sandboxes.is_empty())
        && let Err(error) = runtime.remove_network().await
    {
        tracing::warn!(object = "pod network", %error, "network of pods not removed, the next start uses it");
    }
}
