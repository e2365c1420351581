//! A document with one static pod or a list of them, each valid or invalid on its own.

use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::static_pod::ManifestOrigin;
use serde_json::{Value, json};

use super::{
    ManifestReader, ParsedManifest, ParsedPod, SinglePodReader, catch_panic, parse_messages, place,
    static_pod,
};
use crate::manifest::one_document;
use crate::sources::message::{ManifestMessage, ManifestProblem};

/// Reads static pods of this node.
#[derive(Clone, Debug)]
pub(in crate::sources) struct PodOrListReader {
    pub(in crate::sources) node: String,
}

impl ManifestReader for PodOrListReader {
    type Item = Pod;

    const REQUIRED: bool = false;

    fn is_manifest(_: &Path) -> bool {
        true
    }

    fn read(
        &self,
        bytes: &[u8],
        origin: &ManifestOrigin,
        held: &[Pod],
    ) -> Result<ParsedManifest<Pod>, Vec<ManifestProblem>> {
        let broken = |why: String| vec![ManifestProblem::new(place(origin), why)];
        let read = || one_document(bytes).map(pod_documents).map_err(|error| error.to_string());
        match catch_panic(read).map_err(broken)? {
            PodDocuments::One(pod) => self.read_pod(pod, origin).map_err(broken),
            PodDocuments::List(pods) => {
                let mut parsed = ParsedManifest { items: Vec::new(), messages: Vec::new() };
                pods.into_iter()
                    .for_each(|pod| self.read_list_item(pod, origin, held, &mut parsed));
                Ok(parsed)
            }
        }
    }

    fn name(pod: &Pod) -> String {
        SinglePodReader::name(pod)
    }

    fn pod(pod: &Pod) -> Option<&Pod> {
        Some(pod)
    }
}

impl PodOrListReader {
    fn read_pod(
        &self,
        item: Value,
        origin: &ManifestOrigin,
    ) -> Result<ParsedManifest<Pod>, String> {
        let ParsedPod { pod, unknown_fields } =
            catch_panic(|| static_pod(item, origin, &self.node))?;
        let messages = parse_messages(place(origin), "pod", &Self::name(&pod), &unknown_fields);
        Ok(ParsedManifest { items: vec![pod], messages })
    }

    /// Reads one pod of a list; if it is invalid, the previous pod of its name is kept.
    fn read_list_item(
        &self,
        item: Value,
        origin: &ManifestOrigin,
        held: &[Pod],
        parsed: &mut ParsedManifest<Pod>,
    ) {
        let name = self.name_from_manifest(&item);
        let before = held.iter().find(|pod| Some(pod.full_name()) == name);
        match self.read_pod(item, origin) {
            Ok(read) => {
                parsed.items.extend(read.items);
                parsed.messages.extend(read.messages);
            }
            Err(why) => {
                let problem = ManifestProblem::new(place(origin), why);
                parsed.messages.push(ManifestMessage::broken(&problem, before.is_some()));
                parsed.items.extend(before.cloned());
            }
        }
    }

    /// What a pod of this manifest is called, if it becomes one.
    fn name_from_manifest(&self, item: &Value) -> Option<FullName> {
        let text = |field: &str| item["metadata"][field].as_str().filter(|text| !text.is_empty());
        Some(FullName {
            name: format!("{}-{}", text("name")?, self.node.to_lowercase()),
            namespace: text("namespace").unwrap_or("default").to_owned(),
        })
    }
}

/// The pods of a document.
enum PodDocuments {
    One(Value),
    List(Vec<Value>),
}

fn pod_documents(mut document: Value) -> PodDocuments {
    let is_list = document["kind"] == "PodList" && document["apiVersion"] == "v1";
    match document.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => {
            PodDocuments::List(items.into_iter().map(|item| with_kind(item, "Pod")).collect())
        }
        Some(Value::Null) | None if is_list => PodDocuments::List(Vec::new()),
        Some(_) | None => PodDocuments::One(document),
    }
}

/// Items of a typed list may omit apiVersion and kind.
pub(in crate::sources) fn with_kind(mut item: Value, kind: &str) -> Value {
    if let Value::Object(fields) = &mut item {
        for (field, value) in [("apiVersion", "v1"), ("kind", kind)] {
            fields.entry(field).or_insert(json!(value));
        }
    }
    item
}
