//! The text format of Prometheus (version 0.0.4), which all metrics endpoints answer with.

mod histogram;
#[doc(hidden)]
pub mod strict;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use jiff::Timestamp;

pub use histogram::{DEFAULT_SECONDS, HistogramBuckets};

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How the values of a family change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, until the process restarts.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts values by upper bounds.
    Histogram,
}

/// A histogram as it was at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    /// The upper bound of each bucket, and how many values are at most that.
    pub buckets: Vec<(f64, u64)>,
    /// How many values there are.
    pub count: u64,
    /// The sum of all values, from which a mean is computed.
    pub sum: f64,
}

/// Labels that many samples have, written once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommonLabels {
    text: String,
}

impl CommonLabels {
    /// These labels, in this order.
    pub fn new(labels: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (name, value) in labels {
            if !text.is_empty() {
                text.push(',');
            }
            write_label(&mut text, name, value);
        }
        Self { text }
    }
}

/// The families of one answer, in the order in which they are added.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// A family, to which samples are added. Without any, nothing is written of it.
    pub fn family<'a>(
        &'a mut self,
        name: &'a str,
        kind: MetricKind,
        help: &'a str,
    ) -> MetricFamily<'a> {
        MetricFamily { text: &mut self.text, name, kind, help, has_header: false }
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: f64) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// The samples of one name.
#[derive(Debug)]
pub struct MetricFamily<'a> {
    text: &'a mut String,
    name: &'a str,
    kind: MetricKind,
    help: &'a str,
    has_header: bool,
}

impl MetricFamily<'_> {
    /// Adds a value, which counts as measured when it is asked for.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.line("", labels, None, value, None);
        self
    }

    /// Adds a value that was measured then.
    pub fn sample_at(&mut self, labels: &[(&str, &str)], value: f64, at: Timestamp) -> &mut Self {
        self.line("", labels, None, value, Some(at));
        self
    }

    /// Adds a value that was measured then, with labels of its own after the common ones.
    pub fn sample_of(
        &mut self,
        common: &CommonLabels,
        own: &[(&str, &str)],
        value: f64,
        at: Timestamp,
    ) -> &mut Self {
        self.write_header();
        self.text.push_str(self.name);
        self.text.push('{');
        self.text.push_str(&common.text);
        for (name, value) in own {
            self.text.push(',');
            write_label(self.text, name, value);
        }
        self.text.push_str("} ");
        write_number(self.text, value);
        write_text(self.text, format_args!(" {}\n", at.as_millisecond()));
        self
    }

    /// Adds a histogram.
    pub fn histogram(&mut self, labels: &[(&str, &str)], found: &HistogramSnapshot) -> &mut Self {
        for (bound, count) in &found.buckets {
            self.line("_bucket", labels, Some(*bound), *count as f64, None);
        }
        self.line("_bucket", labels, Some(f64::INFINITY), found.count as f64, None);
        self.line("_sum", labels, None, found.sum, None);
        self.line("_count", labels, None, found.count as f64, None);
        self
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        bound: Option<f64>,
        value: f64,
        at: Option<Timestamp>,
    ) {
        self.write_header();
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        self.write_labels(labels, bound);
        self.text.push(' ');
        write_number(self.text, value);
        if let Some(at) = at {
            write_text(self.text, format_args!(" {}", at.as_millisecond()));
        }
        self.text.push('\n');
    }

    fn write_header(&mut self) {
        if std::mem::replace(&mut self.has_header, true) {
            return;
        }
        let kind = match self.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let (name, help) = (self.name, self.help);
        write_text(self.text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn write_labels(&mut self, labels: &[(&str, &str)], bound: Option<f64>) {
        let mut separator = '{';
        for (name, value) in labels {
            self.text.push(separator);
            write_label(self.text, name, value);
            separator = ',';
        }
        if let Some(bound) = bound {
            write_text(self.text, format_args!("{separator}le=\""));
            write_number(self.text, bound);
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
    }
}

fn write_label(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str("=\"");
    write_escaped(text, value);
    text.push('"');
}

/// A value of a label has no quotes, backslashes and line ends of its own.
fn write_escaped(text: &mut String, value: &str) {
    if !value.contains(['\\', '"', '\n']) {
        return text.push_str(value);
    }
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

fn write_number(text: &mut String, value: f64) {
    if value.is_infinite() {
        text.push_str(if value > 0.0 { "+Inf" } else { "-Inf" });
    } else {
        write_text(text, format_args!("{value}"));
    }
}

fn write_text(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    text.write_fmt(arguments).ok();
}
