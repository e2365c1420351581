//! Writes fields as lines of name and value, nested ones indented.

use std::collections::BTreeMap;
use std::fmt::Write;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The column in which values begin.
const COLUMN: usize = 20;
/// The indentation of each level.
const STEP: usize = 2;

/// The text written so far, and the level.
#[derive(Debug, Default)]
pub(super) struct FieldWriter {
    text: String,
    level: usize,
}

impl FieldWriter {
    pub(super) fn text(self) -> String {
        self.text
    }

    /// A name and its value; a field without a value is left out. Further lines of the value are aligned with its first.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let width = COLUMN.saturating_sub(self.level * STEP).max(name.len() + 3);
        for (number, line) in value.lines().enumerate() {
            let label = if number == 0 { format!("{name}:") } else { String::new() };
            self.line(&format!("{label:width$}{line}"));
        }
    }

    pub(super) fn number(&mut self, name: &str, value: Option<impl ToString>) {
        self.field(name, &value.map(|value| value.to_string()).unwrap_or_default());
    }

    pub(super) fn time(&mut self, name: &str, value: Option<&Time>) {
        self.number(name, value.map(|time| time.0));
    }

    /// Pairs, one to a line.
    pub(super) fn map(&mut self, name: &str, pairs: &BTreeMap<String, String>, between: &str) {
        let lines = pairs.iter().map(|(key, value)| format!("{key}{between}{value}"));
        self.field(name, &lines.collect::<Vec<_>>().join("\n"));
    }

    /// A list, one to a line.
    pub(super) fn list(&mut self, name: &str, items: &[String]) {
        self.field(name, &items.join("\n"));
    }

    /// A name with indented lines below it.
    pub(super) fn block(&mut self, name: &str, lines: &str) {
        self.within(name, |writer| lines.lines().for_each(|line| writer.line(line)));
    }

    /// A name with nested fields below it.
    pub(super) fn within(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.line(&format!("{name}:"));
        self.level += 1;
        write(self);
        self.level -= 1;
    }

    fn line(&mut self, text: &str) {
        let indent = self.level * STEP;
        // Writing to a string does not fail.
        writeln!(self.text, "{:indent$}{}", "", text.trim_end()).ok();
    }
}
