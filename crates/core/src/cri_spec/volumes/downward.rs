//! Files that tell a container about its own pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, Pod, ResourceFieldSelector};

use super::{Payload, VolumeContext, plain};
use crate::cri_spec::env::{self, resource_value, subscript};
use crate::cri_spec::error::{ConfigError, VariableError};
use crate::pod::PodExt;

/// The files that the items ask for.
pub(super) fn payload(
    source: &VolumeContext<'_>,
    items: &[DownwardAPIVolumeFile],
    mode: Option<i32>,
) -> Result<Payload, ConfigError> {
    let made = items.iter().map(|item| {
        let text = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => of_field(source.pod, &field.field_path)?,
            (None, Some(resource)) => of_resource(source, resource)?,
            (None, None) => String::new(),
        };
        let path = plain(&item.path);
        let file = source.file(&path, text.into_bytes().into(), item.mode, mode)?;
        Ok((path, file))
    });
    made.collect()
}

/// Fields that may change while the pod runs, or that it cannot know otherwise; those of its status are for variables.
fn of_field(pod: &Pod, path: &str) -> Result<String, ConfigError> {
    let metadata = &pod.metadata;
    Ok(match path {
        "metadata.labels" => lines(metadata.labels.as_ref()),
        "metadata.annotations" => lines(metadata.annotations.as_ref()),
        "metadata.name" => pod.full_name().name,
        "metadata.namespace" => pod.full_name().namespace,
        "metadata.uid" => pod.uid().to_string(),
        path => return subscript(pod, path),
    })
}

fn of_resource(
    source: &VolumeContext<'_>,
    wanted: &ResourceFieldSelector,
) -> Result<String, ConfigError> {
    let name = wanted.container_name.as_deref().unwrap_or_default();
    let container = source.pod.container(name);
    let container = container.ok_or_else(|| VariableError::NoContainer(name.to_owned()))?;
    let VolumeContext { pod, lookup, node, .. } = *source;
    let source = env::EnvContext { pod, spec: &container.spec, ips: &[], lookup, node };
    resource_value(&source, wanted)
}

/// `key="value"`, a line each, in the order of the keys, without a newline at the end.
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let line = |(key, value): (&String, &String)| format!("{key}={}", quoted(value));
    map.into_iter().flatten().map(line).collect::<Vec<_>>().join("\n")
}

/// Text in quotes as Go writes it with `%q`, which is what readers of these files parse.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            c if is_printable(c) => quoted.push(c),
            c if c.is_ascii() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) < 0x1_0000 => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character can be seen; of all spaces, only the usual one counts. Behind a letter, a mark on it can be seen.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    !c.is_whitespace() && !format!("a{c}").escape_debug().any(|escaped| escaped == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_as_go_does() {
        let rows = [
            ("plain", r#""plain""#),
            ("a \"b\" \\ 'c'", r#""a \"b\" \\ 'c'""#),
            ("\n\r\t\u{7}\u{8}\u{b}\u{c}", r#""\n\r\t\a\b\v\f""#),
            ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
            ("größe 日本", r#""größe 日本""#),
            ("e\u{301}", "\"e\u{301}\""),
            ("\u{a0}\u{200b}\u{feff}\u{85}", r#""\u00a0\u200b\ufeff\u0085""#),
            ("\u{1F600}\u{E0001}", "\"\u{1F600}\\U000e0001\""),
        ];
        for (text, want) in rows {
            assert_eq!(quoted(text), want);
        }
    }
}
