//! What a URL answered, and what was good of it last.
//!
//! As with files, nobody loses a pod because a server is away or one pod of a list is broken.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::report::BrokenManifest;
use oarsman_core::static_pod::Origin;
use serde_json::{Value, json};

use super::line::{Line, Weight};
use super::read::{self, Readable};
use super::shelf::{News, slips};
use crate::book::Found;
use crate::manifest::one_document;
use crate::seams::{HttpAnswer, HttpGet, NetworkError};

#[cfg(test)]
mod tests;

/// After so many failures in a row the log has heard enough of them.
const LOUD_FAILURES: u32 = 3;

/// What is known of a URL.
#[derive(Debug)]
pub(super) struct Page {
    node: String,
    /// As it may be shown. UIDs are made with it, so that a new password or token restarts nothing.
    url: String,
    body: Option<Vec<u8>>,
    pods: Vec<Pod>,
    failures: u32,
    /// What is wrong with the body.
    wrong: Vec<BrokenManifest>,
    /// What went wrong when it was last asked for.
    failure: Option<String>,
}

impl Page {
    /// One that has not been asked for yet.
    pub(super) fn new(url: String, node: String) -> Self {
        Self {
            node,
            url,
            body: None,
            pods: Vec::new(),
            failures: 0,
            wrong: Vec::new(),
            failure: None,
        }
    }

    /// Takes in what came of asking.
    pub(super) fn turn(
        &mut self,
        request: &HttpGet,
        answer: Result<HttpAnswer, NetworkError>,
    ) -> News {
        match good_body(request, answer) {
            Err(why) => News { pods: None, lines: vec![self.failure(&why)] },
            Ok(body) if body.is_empty() => self.emptied(),
            Ok(body) => {
                let recovered = self.recovery();
                let mut news = self.read(body);
                news.lines.extend(recovered);
                news
            }
        }
    }

    /// What there is to tell people of it: what is wrong, and that its pods come from there.
    pub(super) fn found(&self) -> Found {
        let failed = self.failure.iter().map(|why| BrokenManifest {
            place: self.url.clone(),
            why: why.clone(),
            goes_on: !self.pods.is_empty(),
        });
        let places = self.pods.iter().map(|pod| (pod.full_name(), self.url.clone()));
        Found {
            broken: failed.chain(self.wrong.iter().cloned()).collect(),
            places: places.collect(),
        }
    }

    /// A page without a word says that there is nothing; it may as well be a server that is ill.
    fn emptied(&mut self) -> News {
        let line = self.failure("it answered with nothing, so there are no pods from there");
        let new = self.body.replace(Vec::new()).is_none_or(|before| !before.is_empty());
        self.pods.clear();
        News { pods: new.then(Vec::new), lines: vec![line] }
    }

    fn read(&mut self, body: Vec<u8>) -> News {
        if self.body.as_ref() == Some(&body) {
            return News::default();
        }
        let first = self.body.is_none();
        let mut lines = Vec::new();
        let pods = self.understand(&body, &mut lines);
        self.body = Some(body);
        self.wrong = lines.iter().filter_map(|line| line.broken.clone()).collect();
        let changed = pods.filter(|pods| first || *pods != self.pods);
        self.pods = changed.clone().unwrap_or_else(|| std::mem::take(&mut self.pods));
        News { pods: changed, lines }
    }

    /// All pods on the page; none when nothing on it is understood, and so nobody knows which there should be.
    fn understand(&self, body: &[u8], lines: &mut Vec<Line>) -> Option<Vec<Pod>> {
        let read = || one_document(body).map(sheets).map_err(|error| error.to_string());
        match read::unharmed(read) {
            Ok(Sheets::One(pod)) => {
                self.pod(pod, !self.pods.is_empty(), lines).map(|pod| vec![pod])
            }
            Ok(Sheets::List(pods)) => {
                Some(pods.into_iter().filter_map(|pod| self.pod(pod, false, lines)).collect())
            }
            Err(why) => {
                lines.push(Line::broken(&self.url, &why, !self.pods.is_empty()));
                None
            }
        }
    }

    /// One pod on the page, or the one of its name that was there before. `others_go_on` when it is broken.
    fn pod(&self, item: Value, others_go_on: bool, lines: &mut Vec<Line>) -> Option<Pod> {
        let held = self.held(&item);
        let origin = Origin::Url(self.url.clone());
        match read::unharmed(|| read::pod(item, &origin, &self.node)) {
            Ok(Readable { pod, unknown_fields }) => {
                let said = format!("it holds pod {}", pod.full_name());
                lines.push(Line::new(Weight::News, &self.url, said));
                lines.extend(slips(&self.url, &unknown_fields));
                Some(pod)
            }
            Err(why) => {
                lines.push(Line::broken(&self.url, &why, held.is_some() || others_go_on));
                held.cloned()
            }
        }
    }

    /// The good pod that went by this name before.
    fn held(&self, item: &Value) -> Option<&Pod> {
        let text = |field: &str| item["metadata"][field].as_str().filter(|text| !text.is_empty());
        let name = FullName {
            name: format!("{}-{}", text("name")?, self.node.to_lowercase()),
            namespace: text("namespace").unwrap_or("default").to_owned(),
        };
        self.pods.iter().find(|pod| pod.full_name() == name)
    }

    fn failure(&mut self, why: &str) -> Line {
        self.failures = self.failures.saturating_add(1);
        self.failure = Some(why.to_owned());
        let weight = if self.failures > LOUD_FAILURES { Weight::Detail } else { Weight::Error };
        let last =
            if self.failures == LOUD_FAILURES { " (said no more until it changes)" } else { "" };
        Line::new(weight, &self.url, format!("{why}{last}"))
    }

    fn recovery(&mut self) -> Option<Line> {
        self.failure = None;
        let failures = std::mem::take(&mut self.failures);
        let said = format!("it answers again, after {failures} failures");
        (failures > 0).then(|| Line::new(Weight::News, &self.url, said))
    }
}

/// The body of an answer that is worth reading.
fn good_body(
    request: &HttpGet,
    answer: Result<HttpAnswer, NetworkError>,
) -> Result<Vec<u8>, String> {
    let kept = |why: String| format!("{why}; pods that came from there go on");
    let answer = answer.map_err(|error| kept(error.to_string()))?;
    match answer.status {
        200 => answer.into_whole_body(request).map_err(|error| kept(error.to_string())),
        300..400 => Err(kept(format!(
            "it answered with status {} and points elsewhere, where nobody follows: give the URL it points to",
            answer.status
        ))),
        status => Err(kept(format!("it answered with status {status} instead of 200"))),
    }
}

/// What is on a page.
enum Sheets {
    One(Value),
    List(Vec<Value>),
}

/// Pods in a list need not say what they are.
fn sheets(mut document: Value) -> Sheets {
    let is_list = document["kind"] == "PodList" && document["apiVersion"] == "v1";
    match document.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => Sheets::List(items.into_iter().map(typed).collect()),
        Some(Value::Null) | None if is_list => Sheets::List(Vec::new()),
        Some(_) | None => Sheets::One(document),
    }
}

fn typed(mut item: Value) -> Value {
    if let Value::Object(fields) = &mut item {
        for (field, value) in BTreeMap::from([("apiVersion", "v1"), ("kind", "Pod")]) {
            fields.entry(field).or_insert(json!(value));
        }
    }
    item
}
