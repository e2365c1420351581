//! Parses manifests into the objects of a source.

mod pod_or_list;
mod single_pod;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::api::decode::{Decoded, decode_pod};
use oarsman_core::api::defaults::set_defaults;
use oarsman_core::api::error::FieldError;
use oarsman_core::api::validate::validate_pod;
use oarsman_core::static_pod::{
    ManifestOrigin, ProvidedObjects, StaticPodNaming, check_references, prepare,
};
use serde_json::Value;

use super::message::{ManifestMessage, ManifestProblem, MessageLevel};

pub(super) use pod_or_list::{PodOrListReader, with_kind};
pub(super) use single_pod::SinglePodReader;

/// How a source parses its manifests.
pub(super) trait ManifestReader: Send + Sync + 'static {
    /// The object type; a manifest may hold several.
    type Item: Clone + PartialEq + Send + 'static;

    /// Whether an empty or missing place is an error, as for one that was given on the command line.
    const REQUIRED: bool;

    /// Whether a file in a directory is a manifest.
    fn is_manifest(path: &Path) -> bool;

    /// Parses a manifest; `held` are its previous objects.
    fn read(
        &self,
        bytes: &[u8],
        origin: &ManifestOrigin,
        held: &[Self::Item],
    ) -> Result<ParsedManifest<Self::Item>, Vec<ManifestProblem>>;

    /// What an item is called.
    fn name(item: &Self::Item) -> String;

    /// The pod that an item is, if it is one.
    fn pod(item: &Self::Item) -> Option<&Pod>;
}

/// The objects of a manifest, and the messages about them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParsedManifest<T> {
    pub(super) items: Vec<T>,
    pub(super) messages: Vec<ManifestMessage>,
}

/// A pod, and the unknown fields of its manifest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParsedPod {
    pub(super) pod: Pod,
    /// Fields that a pod does not have.
    pub(super) unknown_fields: Vec<String>,
}

/// Makes a manifest a static pod of this node, which names nothing that only an API server has.
fn static_pod(manifest: Value, origin: &ManifestOrigin, node: &str) -> Result<ParsedPod, String> {
    let parsed_pod = pod(manifest, origin, node, StaticPodNaming::OfNode)?;
    check_references(&parsed_pod.pod, &ProvidedObjects::default())
        .map_err(|e| format!("{e}: only an API server has them; take that out of the pod"))?;
    Ok(parsed_pod)
}

/// Makes a manifest a pod of this node, with defaults, checked; or says why not, and what to do about it.
pub(super) fn pod(
    manifest: Value,
    origin: &ManifestOrigin,
    node: &str,
    naming: StaticPodNaming,
) -> Result<ParsedPod, String> {
    let Decoded { pod, unknown_fields } = decode_pod(manifest).map_err(|e| e.to_string())?;
    let mut pod = prepare(pod, origin, node, naming).map_err(|e| e.to_string())?;
    set_defaults(&mut pod);
    let unknown_field_hint = unknown_field_hint(&unknown_fields);
    check_valid("pod", &validate_pod(&pod)).map_err(|why| why + &unknown_field_hint)?;
    Ok(ParsedPod { pod, unknown_fields })
}

/// An unknown field may be a missing one at the wrong place.
fn unknown_field_hint(unknown_fields: &[String]) -> String {
    match first_of(unknown_fields, ", ") {
        none if none.is_empty() => none,
        fields => format!(" (no pod has these fields, which may be indented wrongly: {fields})"),
    }
}

/// The first of several texts, and how many more there are: a manifest that others wrote must not fill the log.
fn first_of(texts: &[String], separator: &str) -> String {
    const MOST: usize = 20;
    let cut = |text: &String| text.chars().take(160).collect::<String>();
    let first = texts.iter().take(MOST).map(cut).collect::<Vec<_>>().join(separator);
    match texts.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first}{separator}and {more} more"),
    }
}

/// Fails with the first validation errors, if there are any.
pub(super) fn check_valid(what: &str, wrong: &[FieldError]) -> Result<(), String> {
    if wrong.is_empty() {
        return Ok(());
    }
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    Err(format!("the {what} is not valid: {}; correct these fields", first_of(&wrong, "; ")))
}

/// A panic of the parser is an error of that manifest only.
pub(super) fn catch_panic<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let fallen = |_| Err("reading it failed in an unforeseen way; please report it".to_owned());
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(fallen)
}

/// The messages about an object that was read.
pub(super) fn parse_messages(
    place: &str,
    what: &str,
    name: &str,
    unknown_fields: &[String],
) -> Vec<ManifestMessage> {
    let held = ManifestMessage::of_manifest(MessageLevel::Info, place, format!("it holds {name}"));
    std::iter::once(held).chain(unknown_field_message(place, what, unknown_fields)).collect()
}

/// Unknown fields are most likely typing errors.
fn unknown_field_message(
    place: &str,
    what: &str,
    unknown_fields: &[String],
) -> Option<ManifestMessage> {
    let fields = first_of(unknown_fields, ", ");
    let summary = format!("no {what} has these fields, so they do nothing: {fields}; correct them");
    (!unknown_fields.is_empty())
        .then(|| ManifestMessage::of_manifest(MessageLevel::Warning, place, summary))
}

/// The file or URL.
pub(super) fn place(origin: &ManifestOrigin) -> &str {
    let (ManifestOrigin::File(place) | ManifestOrigin::Url(place)) = origin;
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row H7 of docs/security.md.
    #[test]
    fn of_many_unknown_fields_the_first_are_named() {
        let fields: Vec<String> = (0..100_000).map(|n| format!("spec.field{n}")).collect();
        let told = unknown_field_hint(&fields);
        assert!(told.len() < 4096 && told.contains("spec.field19, and 99980 more"), "{told}");
        assert!(first_of(&["x".repeat(1 << 20)], ", ").len() < 4096);
        assert_eq!(first_of(&["a".to_owned(), "b".to_owned()], "; "), "a; b");
    }
}
