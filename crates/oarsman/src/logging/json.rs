//! Lines as JSON, with the names that the Go kubelet's have: `ts` in milliseconds, `caller`, `msg`, `v`, and the rest by name.

use std::fmt::{self, Write};
use std::sync::Arc;

use jiff::Timestamp;
use oarsman_clock::Clock;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer};

use super::write_line;

/// Writes every event as one line of JSON.
pub(super) struct JsonLayer<W> {
    writer: W,
    clock: Arc<dyn Clock>,
}

impl<W> JsonLayer<W> {
    pub(super) fn new(writer: W, clock: Arc<dyn Clock>) -> Self {
        Self { writer, clock }
    }
}

impl<S, W> Layer<S> for JsonLayer<W>
where
    S: Subscriber,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut event_fields = EventFields::default();
        event.record(&mut event_fields);
        let mut line = event_fields.line(event.metadata(), self.clock.wall());
        line.push('\n');
        write_line(&self.writer, line.as_bytes());
    }
}

/// The fields of an event.
#[derive(Default)]
struct EventFields {
    message: String,
    fields: Map<String, Value>,
}

impl EventFields {
    fn line(self, about: &Metadata<'_>, now: Timestamp) -> String {
        let mut line = Map::new();
        let milliseconds = now.as_nanosecond() / 1_000;
        #[expect(clippy::cast_precision_loss, reason = "a time stamp in microseconds fits")]
        line.insert("ts".to_owned(), json!(milliseconds as f64 / 1_000.0));
        let caller = about.file().zip(about.line()).map(|(file, line)| format!("{file}:{line}"));
        line.insert("caller".to_owned(), json!(caller.unwrap_or_default()));
        line.insert("logger".to_owned(), json!(about.target()));
        line.insert("msg".to_owned(), Value::String(self.message));
        match *about.level() {
            Level::ERROR => line.insert("severity".to_owned(), json!("error")),
            Level::WARN => line.insert("severity".to_owned(), json!("warning")),
            Level::INFO => line.insert("v".to_owned(), json!(0)),
            Level::DEBUG => line.insert("v".to_owned(), json!(4)),
            Level::TRACE => line.insert("v".to_owned(), json!(8)),
        };
        for (name, value) in self.fields {
            line.entry(name).or_insert(value);
        }
        Value::Object(line).to_string()
    }

    fn insert(&mut self, field: &Field, value: Value) {
        // The name that the Go kubelet gives an error.
        let name = if field.name() == "error" { "err" } else { field.name() };
        self.fields.insert(name.to_owned(), value);
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string does not fail.
            write!(self.message, "{value:?}").ok();
        } else {
            self.insert(field, Value::String(format!("{value:?}")));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, json!(value));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use oarsman_clock::SystemClock;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_is_an_object_with_the_field_names_of_the_go_kubelet() {
        let paper = SharedBuffer::default();
        let writer = paper.clone();
        let lines = JsonLayer::new(move || writer.clone(), Arc::new(SystemClock::start()));
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(pod = %"default/web", restarts = 2, "it \"runs\"");
            tracing::warn!(error = "refused", "cannot pull");
        });
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["msg"], "it \"runs\"");
        assert_eq!(lines[0]["v"], 0);
        assert_eq!(lines[0]["pod"], "default/web");
        assert_eq!(lines[0]["restarts"], 2);
        assert!(lines[0]["ts"].as_f64().unwrap() > 1.7e12, "milliseconds");
        assert!(lines[0]["caller"].as_str().unwrap().contains("json.rs:"));
        assert_eq!(
            (&lines[1]["severity"], &lines[1]["err"]),
            (&json!("warning"), &json!("refused"))
        );
        assert!(lines[1].get("v").is_none());
    }
}
