//! Parses manifests into the objects of a source.

mod one_pod;
mod pod_or_list;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::api::decode::{Decoded, decode_pod};
use oarsman_core::api::defaults::set_defaults;
use oarsman_core::api::error::FieldError;
use oarsman_core::api::validate::validate_pod;
use oarsman_core::static_pod::{Given, Naming, Origin, check_references, prepare};
use serde_json::Value;

use super::line::{Line, Remark, Weight};

pub(super) use one_pod::OnePod;
pub(super) use pod_or_list::{PodOrList, typed};

/// How a source parses its manifests.
pub(super) trait Reading: Send + Sync + 'static {
    /// The object type; a manifest may hold several.
    type Item: Clone + PartialEq + Send + 'static;

    /// Whether an empty or missing place is an error, as for one that was given on the command line.
    const MUST_BE_THERE: bool;

    /// Whether a file in a directory is a manifest.
    fn is_manifest(path: &Path) -> bool;

    /// Parses a manifest; `held` are its previous objects.
    fn read(
        &self,
        bytes: &[u8],
        origin: &Origin,
        held: &[Self::Item],
    ) -> Result<Sheet<Self::Item>, Vec<Remark>>;

    /// What an item is called.
    fn name(item: &Self::Item) -> String;

    /// The pod that an item is, if it is one.
    fn pod(item: &Self::Item) -> Option<&Pod>;
}

/// The objects of a manifest, and the messages about them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sheet<T> {
    pub(super) items: Vec<T>,
    pub(super) lines: Vec<Line>,
}

/// A pod, and the unknown fields of its manifest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Readable {
    pub(super) pod: Pod,
    /// Fields that a pod does not have.
    pub(super) unknown_fields: Vec<String>,
}

/// Makes a manifest a static pod of this node, which names nothing that only an API server has.
fn static_pod(manifest: Value, origin: &Origin, node: &str) -> Result<Readable, String> {
    let readable = pod(manifest, origin, node, Naming::OfNode)?;
    check_references(&readable.pod, &Given::default())
        .map_err(|e| format!("{e}: only an API server has them; take that out of the pod"))?;
    Ok(readable)
}

/// Makes a manifest a pod of this node, with defaults, checked; or says why not, and what to do about it.
pub(super) fn pod(
    manifest: Value,
    origin: &Origin,
    node: &str,
    naming: Naming,
) -> Result<Readable, String> {
    let Decoded { pod, unknown_fields } = decode_pod(manifest).map_err(|e| e.to_string())?;
    let mut pod = prepare(pod, origin, node, naming).map_err(|e| e.to_string())?;
    set_defaults(&mut pod);
    let misplaced = misplaced(&unknown_fields);
    valid("pod", &validate_pod(&pod)).map_err(|why| why + &misplaced)?;
    Ok(Readable { pod, unknown_fields })
}

/// An unknown field may be a missing one at the wrong place.
fn misplaced(unknown_fields: &[String]) -> String {
    match unknown_fields.join(", ") {
        none if none.is_empty() => none,
        fields => format!(" (no pod has these fields, which may be indented wrongly: {fields})"),
    }
}

/// Fails with all validation errors, if there are any.
pub(super) fn valid(what: &str, wrong: &[FieldError]) -> Result<(), String> {
    if wrong.is_empty() {
        return Ok(());
    }
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    Err(format!("the {what} is not valid: {}; correct these fields", wrong.join("; ")))
}

/// A panic of the parser is an error of that manifest only.
pub(super) fn unharmed<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let fallen = |_| Err("reading it failed in an unforeseen way; please report it".to_owned());
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(fallen)
}

/// The messages about an object that was read.
pub(super) fn understood(
    place: &str,
    what: &str,
    name: &str,
    unknown_fields: &[String],
) -> Vec<Line> {
    let held = Line::of_manifest(Weight::News, place, format!("it holds {name}"));
    std::iter::once(held).chain(slips(place, what, unknown_fields)).collect()
}

/// Unknown fields are most likely typing errors.
fn slips(place: &str, what: &str, unknown_fields: &[String]) -> Option<Line> {
    let fields = unknown_fields.join(", ");
    let said = format!("no {what} has these fields, so they do nothing: {fields}; correct them");
    (!unknown_fields.is_empty()).then(|| Line::of_manifest(Weight::Warning, place, said))
}

/// The file or URL.
pub(super) fn place(origin: &Origin) -> &str {
    let (Origin::File(place) | Origin::Url(place)) = origin;
    place
}
