//! Spans of traces: what the agent does and how long it takes, for an OTLP collector, when `tracing` is configured.
//!
//! [`in_span`] runs work in a span. Whatever the work does in its own task is below that span: spans that it begins, and calls to the runtime,
//! which carry [`traceparent`]. The root of a trace decides by its random id whether the whole trace is sampled. Spans that have ended wait in a bounded queue
//! for the [`SpanExporter`]; those that find no room, or that the collector does not take, are dropped and counted. Without a [`Tracer`] work runs as it is:
//! nothing is allocated, and no layer is around it.

mod collector;
mod current;
mod exporter;
mod ids;
mod sampler;
#[cfg(test)]
mod tests;
mod tracer;
pub mod wire;

pub use collector::InvalidCollector;
pub use current::traceparent;
pub use exporter::{SpanExporter, TracingSettings, start};
pub use tracer::{SpanDescription, SpanOutcome, Tracer, in_span};
