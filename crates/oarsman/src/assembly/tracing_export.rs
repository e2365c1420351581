//! The exporter of spans, if `tracing` is configured.

use std::sync::Arc;

use anyhow::{Context, Result};
use oarsman_clock::Clock;
use oarsman_spans::{SpanExporter, Tracer};

use crate::settings::AgentSettings;

pub(super) fn start(
    settings: &AgentSettings,
    clock: &Arc<dyn Clock>,
) -> Result<Option<(Arc<Tracer>, Arc<SpanExporter>)>> {
    let Some(tracing) = &settings.tracing else { return Ok(None) };
    let started = oarsman_spans::start(tracing, &settings.node_name, clock);
    started.context("tracing.endpoint of the configuration").map(Some)
}
