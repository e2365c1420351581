//! From manifests to what a source hands on.

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

/// How a source reads its manifests.
pub(super) trait Reading: Send + Sync + 'static {
    /// What a manifest holds, perhaps several of it.
    type Item: Clone + PartialEq + Send + 'static;

    /// Whether a person named the place just now, so that there has to be something.
    const MUST_BE_THERE: bool;

    /// Whether a file in a directory is a manifest.
    fn is_manifest(path: &Path) -> bool;

    /// What a manifest holds now, when it held that before.
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

/// What a manifest holds, and what there is to say about it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sheet<T> {
    pub(super) items: Vec<T>,
    pub(super) lines: Vec<Line>,
}

/// A pod and what its manifest says besides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Readable {
    pub(super) pod: Pod,
    /// Fields that no pod has.
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

/// Where a field is missing, one that nobody knows may be it.
fn misplaced(unknown_fields: &[String]) -> String {
    match unknown_fields.join(", ") {
        none if none.is_empty() => none,
        fields => format!(" (no pod has these fields, which may be indented wrongly: {fields})"),
    }
}

/// Refuses what has something wrong with it, all of which is told.
pub(super) fn valid(what: &str, wrong: &[FieldError]) -> Result<(), String> {
    if wrong.is_empty() {
        return Ok(());
    }
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    Err(format!("the {what} is not valid: {}; correct these fields", wrong.join("; ")))
}

/// A manifest that makes the reader itself fail is one broken manifest, and the others do not suffer for it.
pub(super) fn unharmed<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let fallen = |_| Err("reading it failed in an unforeseen way; please report it".to_owned());
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(fallen)
}

/// What is said of something that was read.
pub(super) fn understood(
    place: &str,
    what: &str,
    name: &str,
    unknown_fields: &[String],
) -> Vec<Line> {
    let held = Line::of_manifest(Weight::News, place, format!("it holds {name}"));
    std::iter::once(held).chain(slips(place, what, unknown_fields)).collect()
}

/// Fields that nobody knows are most likely slips of the pen.
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
