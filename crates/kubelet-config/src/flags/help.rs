//! The text of `--help`: all flags in groups, the most needed first.

use std::fmt::Write;

use serde_json::Value;

use super::{Flag, FlagStatus, ProgramFlags, table};
use crate::configuration::KubeletConfiguration;
use crate::field_path::FieldPath;

const HEAD: &str = "\
Look after this node's pods, as the Go kubelet does and with its flags.

Usage: oarsman kubelet [FLAGS]        (or kubelet [FLAGS], by a link of that name)

Examples:
  oarsman kubelet --config=/etc/kubernetes/kubelet.yaml
  oarsman kubelet --pod-manifest-path=/etc/kubernetes/manifests --fail-swap-on=false
  oarsman check --config=/etc/kubernetes/kubelet.yaml

Flags win over drop-ins (--config-dir), drop-ins over the file (--config), and the file over defaults.
";

const GROUPS: [(FlagStatus, &str); 4] = [
    (FlagStatus::Current, "Flags"),
    (FlagStatus::OarsmanOnly, "Flags that only Oarsman has"),
    (FlagStatus::Deprecated, "Deprecated: set the field in the file of --config instead"),
    (FlagStatus::NoOp, "Taken, and of no use"),
];

/// The column in which descriptions begin.
const MARGIN: usize = 34;

/// The whole help text.
pub fn help() -> String {
    let defaults = serde_json::to_value(KubeletConfiguration::default()).unwrap_or_default();
    let own = serde_json::to_value(ProgramFlags::default()).unwrap_or_default();
    let mut text = HEAD.to_owned();
    for (status, title) in GROUPS {
        // Writing to a text cannot fail.
        writeln!(text, "\n{title}:").ok();
        for flag in table::all().filter(|flag| flag.status == status) {
            let default = match flag.field {
                "" => own.get(flag.name),
                field => FieldPath::at(field).get(&defaults),
            };
            text.push_str(&line(flag, default));
        }
    }
    text
}

fn line(flag: &Flag, default: Option<&Value>) -> String {
    let placeholder = flag.kind.placeholder();
    let equals = if placeholder.is_empty() { "" } else { "=" };
    let name = format!("  --{}{equals}{placeholder}", flag.name);
    let gap = if name.len() < MARGIN { "" } else { "\n" };
    let pad = MARGIN - if gap.is_empty() { name.len() } else { 0 };
    let field = match flag.field {
        "" => String::new(),
        field => format!(" [{field}]"),
    };
    let default =
        default.and_then(spelled).map_or_else(String::new, |text| format!(" (default {text})"));
    format!("{name}{gap}{:pad$}{}{default}{field}\n", "", flag.help)
}

/// A default that is shown in the help.
fn spelled(value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) | Value::Number(_) => Some(value.to_string()),
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(items) if !items.is_empty() => {
            Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","))
        }
        Value::Null
        | Value::Bool(false)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}
