//! The state of a URL source: the last response and its last valid objects.
//!
//! As with files, pods are kept while the server is unreachable or one pod of a list is invalid.

use oarsman_core::pod::PodExt;
use oarsman_core::report::BrokenManifest;
use oarsman_core::static_pod::ManifestOrigin;

use super::file_manifests::ManifestUpdate;
use super::manifest_reader::{ManifestReader, ParsedManifest};
use super::message::{ManifestMessage, ManifestProblem, MessageLevel};
use crate::report_store::SourceReport;
use oarsman_net::{HttpGet, HttpResponse, NetworkError};

#[cfg(test)]
mod tests;

/// Further failures in a row are logged at debug level only.
const LOGGED_FAILURES: u32 = 3;

/// What is known of a URL.
#[derive(Debug)]
pub(super) struct UrlManifests<R: ManifestReader> {
    reader: R,
    /// Without credentials. UIDs are derived from it, so that a new password or token restarts nothing.
    url: String,
    body: Option<Vec<u8>>,
    items: Vec<R::Item>,
    failures: u32,
    /// The problems of the body.
    wrong: Vec<BrokenManifest>,
    /// The failure of the last request.
    failure: Option<String>,
}

impl<R: ManifestReader> UrlManifests<R> {
    /// No request has been made yet.
    pub(super) fn new(url: String, reader: R) -> Self {
        let (body, items, wrong, failure) = (None, Vec::new(), Vec::new(), None);
        Self { reader, url, body, items, failures: 0, wrong, failure }
    }

    /// Applies the result of a request.
    pub(super) fn update(
        &mut self,
        request: &HttpGet,
        answer: Result<HttpResponse, NetworkError>,
    ) -> ManifestUpdate<R::Item> {
        match complete_body(request, answer) {
            Err(why) => {
                let fate = "; what came from there goes on";
                ManifestUpdate { items: None, messages: vec![self.on_failure(&why, fate)] }
            }
            Ok(body) if body.is_empty() && !R::REQUIRED => self.on_empty_body(),
            Ok(body) => {
                let recovered = self.on_recovery();
                let mut update = self.read(body);
                update.messages.extend(recovered);
                update
            }
        }
    }

    /// The report of this source: its problems, and the pods that come from it.
    pub(super) fn source_report(&self) -> SourceReport {
        let failed = self.failure.iter();
        let failed =
            failed.map(|why| ManifestProblem::new(&self.url, why).broken(!self.items.is_empty()));
        let pods = self.items.iter().filter_map(R::pod);
        let places = pods.map(|pod| (pod.full_name(), self.url.clone()));
        SourceReport {
            broken: failed.chain(self.wrong.iter().cloned()).collect(),
            places: places.collect(),
        }
    }

    /// An empty body means that there are no pods; it is logged as an error, since it may be a fault of the server.
    fn on_empty_body(&mut self) -> ManifestUpdate<R::Item> {
        let message =
            self.on_failure("it answered with nothing, so there are no pods from there", "");
        let new = self.body.replace(Vec::new()).is_none_or(|before| !before.is_empty());
        self.items.clear();
        ManifestUpdate { items: new.then(Vec::new), messages: vec![message] }
    }

    fn read(&mut self, body: Vec<u8>) -> ManifestUpdate<R::Item> {
        if self.body.as_ref() == Some(&body) {
            return ManifestUpdate::default();
        }
        let first = self.body.is_none();
        let origin = ManifestOrigin::Url(self.url.clone());
        let read = self.reader.read(&body, &origin, &self.items);
        self.body = Some(body);
        let kept = !self.items.is_empty();
        let (items, messages) = match read {
            Ok(ParsedManifest { items, messages }) => (Some(items), messages),
            // The body as a whole cannot be parsed: the previous objects are kept.
            Err(wrong) => {
                (None, wrong.iter().map(|problem| ManifestMessage::broken(problem, kept)).collect())
            }
        };
        self.wrong = messages.iter().filter_map(|message| message.broken.clone()).collect();
        let changed = items.filter(|items| first || *items != self.items);
        self.items = changed.clone().unwrap_or_else(|| std::mem::take(&mut self.items));
        ManifestUpdate { items: changed, messages }
    }

    fn on_failure(&mut self, why: &str, fate: &'static str) -> ManifestMessage {
        self.failures = self.failures.saturating_add(1);
        self.failure = Some(why.to_owned());
        let level =
            if self.failures > LOGGED_FAILURES { MessageLevel::Debug } else { MessageLevel::Error };
        let last =
            if self.failures == LOGGED_FAILURES { " (said no more until it changes)" } else { "" };
        ManifestMessage { fate, ..ManifestMessage::new(level, &self.url, format!("{why}{last}")) }
    }

    fn on_recovery(&mut self) -> Option<ManifestMessage> {
        self.failure = None;
        let failures = std::mem::take(&mut self.failures);
        let summary = format!("it answers again, after {failures} failures");
        (failures > 0).then(|| ManifestMessage::new(MessageLevel::Info, &self.url, summary))
    }
}

/// The body of a successful and complete response.
fn complete_body(
    request: &HttpGet,
    answer: Result<HttpResponse, NetworkError>,
) -> Result<Vec<u8>, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    match answer.status {
        200 => answer.into_complete_body(request).map_err(|error| error.to_string()),
        300..400 => Err(format!(
            "it answered with status {} and points elsewhere, where nobody follows: give the URL it points to",
            answer.status
        )),
        status => Err(format!("it answered with status {status} instead of 200")),
    }
}
