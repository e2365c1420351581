//! A document with one static pod or a list of them, each valid or invalid on its own.

use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::static_pod::Origin;
use serde_json::{Value, json};

use super::{OnePod, Readable, Reading, Sheet, place, static_pod, understood, unharmed};
use crate::manifest::one_document;
use crate::sources::line::{Line, Remark};

/// Reads static pods of this node.
#[derive(Clone, Debug)]
pub(in crate::sources) struct PodOrList {
    pub(in crate::sources) node: String,
}

impl Reading for PodOrList {
    type Item = Pod;

    const MUST_BE_THERE: bool = false;

    fn is_manifest(_: &Path) -> bool {
        true
    }

    fn read(&self, bytes: &[u8], origin: &Origin, held: &[Pod]) -> Result<Sheet<Pod>, Vec<Remark>> {
        let broken = |why: String| vec![Remark::new(place(origin), why)];
        let read = || one_document(bytes).map(pods_on).map_err(|error| error.to_string());
        match unharmed(read).map_err(broken)? {
            Pods::One(pod) => self.read_pod(pod, origin).map_err(broken),
            Pods::List(pods) => {
                let mut sheet = Sheet { items: Vec::new(), lines: Vec::new() };
                pods.into_iter().for_each(|pod| self.one_of_many(pod, origin, held, &mut sheet));
                Ok(sheet)
            }
        }
    }

    fn name(pod: &Pod) -> String {
        OnePod::name(pod)
    }

    fn pod(pod: &Pod) -> Option<&Pod> {
        Some(pod)
    }
}

impl PodOrList {
    fn read_pod(&self, item: Value, origin: &Origin) -> Result<Sheet<Pod>, String> {
        let Readable { pod, unknown_fields } = unharmed(|| static_pod(item, origin, &self.node))?;
        let lines = understood(place(origin), "pod", &Self::name(&pod), &unknown_fields);
        Ok(Sheet { items: vec![pod], lines })
    }

    /// Reads one pod of a list; if it is invalid, the previous pod of its name is kept.
    fn one_of_many(&self, item: Value, origin: &Origin, held: &[Pod], sheet: &mut Sheet<Pod>) {
        let name = self.name_of(&item);
        let before = held.iter().find(|pod| Some(pod.full_name()) == name);
        match self.read_pod(item, origin) {
            Ok(read) => {
                sheet.items.extend(read.items);
                sheet.lines.extend(read.lines);
            }
            Err(why) => {
                let remark = Remark::new(place(origin), why);
                sheet.lines.push(Line::broken(&remark, before.is_some()));
                sheet.items.extend(before.cloned());
            }
        }
    }

    /// What a pod of this manifest is called, if it becomes one.
    fn name_of(&self, item: &Value) -> Option<FullName> {
        let text = |field: &str| item["metadata"][field].as_str().filter(|text| !text.is_empty());
        Some(FullName {
            name: format!("{}-{}", text("name")?, self.node.to_lowercase()),
            namespace: text("namespace").unwrap_or("default").to_owned(),
        })
    }
}

/// The pods of a document.
enum Pods {
    One(Value),
    List(Vec<Value>),
}

fn pods_on(mut document: Value) -> Pods {
    let is_list = document["kind"] == "PodList" && document["apiVersion"] == "v1";
    match document.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => {
            Pods::List(items.into_iter().map(|item| typed(item, "Pod")).collect())
        }
        Some(Value::Null) | None if is_list => Pods::List(Vec::new()),
        Some(_) | None => Pods::One(document),
    }
}

/// Items of a typed list may omit apiVersion and kind.
pub(in crate::sources) fn typed(mut item: Value, kind: &str) -> Value {
    if let Value::Object(fields) = &mut item {
        for (field, value) in [("apiVersion", "v1"), ("kind", kind)] {
            fields.entry(field).or_insert(json!(value));
        }
    }
    item
}
