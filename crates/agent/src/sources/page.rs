//! The state of a URL source: the last response and its last valid objects.
//!
//! As with files, pods are kept while the server is unreachable or one pod of a list is invalid.

use oarsman_core::pod::PodExt;
use oarsman_core::report::BrokenManifest;
use oarsman_core::static_pod::Origin;

use super::line::{Line, Remark, Weight};
use super::read::{Reading, Sheet};
use super::shelf::News;
use crate::book::Found;
use oarsman_net::{HttpGet, HttpResponse, NetworkError};

#[cfg(test)]
mod tests;

/// Further failures in a row are logged at debug level only.
const LOUD_FAILURES: u32 = 3;

/// What is known of a URL.
#[derive(Debug)]
pub(super) struct Page<R: Reading> {
    reading: R,
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

impl<R: Reading> Page<R> {
    /// No request has been made yet.
    pub(super) fn new(url: String, reading: R) -> Self {
        let (body, items, wrong, failure) = (None, Vec::new(), Vec::new(), None);
        Self { reading, url, body, items, failures: 0, wrong, failure }
    }

    /// Applies the result of a request.
    pub(super) fn turn(
        &mut self,
        request: &HttpGet,
        answer: Result<HttpResponse, NetworkError>,
    ) -> News<R::Item> {
        match good_body(request, answer) {
            Err(why) => {
                let fate = "; what came from there goes on";
                News { items: None, lines: vec![self.failure(&why, fate)] }
            }
            Ok(body) if body.is_empty() && !R::MUST_BE_THERE => self.emptied(),
            Ok(body) => {
                let recovered = self.recovery();
                let mut news = self.read(body);
                news.lines.extend(recovered);
                news
            }
        }
    }

    /// The report of this source: its problems, and the pods that come from it.
    pub(super) fn found(&self) -> Found {
        let failed = self.failure.iter();
        let failed = failed.map(|why| Remark::new(&self.url, why).broken(!self.items.is_empty()));
        let pods = self.items.iter().filter_map(R::pod);
        let places = pods.map(|pod| (pod.full_name(), self.url.clone()));
        Found {
            broken: failed.chain(self.wrong.iter().cloned()).collect(),
            places: places.collect(),
        }
    }

    /// An empty body means that there are no pods; it is logged as an error, since it may be a fault of the server.
    fn emptied(&mut self) -> News<R::Item> {
        let line = self.failure("it answered with nothing, so there are no pods from there", "");
        let new = self.body.replace(Vec::new()).is_none_or(|before| !before.is_empty());
        self.items.clear();
        News { items: new.then(Vec::new), lines: vec![line] }
    }

    fn read(&mut self, body: Vec<u8>) -> News<R::Item> {
        if self.body.as_ref() == Some(&body) {
            return News::default();
        }
        let first = self.body.is_none();
        let origin = Origin::Url(self.url.clone());
        let read = self.reading.read(&body, &origin, &self.items);
        self.body = Some(body);
        let kept = !self.items.is_empty();
        let (items, lines) = match read {
            Ok(Sheet { items, lines }) => (Some(items), lines),
            // The body as a whole cannot be parsed: the previous objects are kept.
            Err(wrong) => (None, wrong.iter().map(|remark| Line::broken(remark, kept)).collect()),
        };
        self.wrong = lines.iter().filter_map(|line| line.broken.clone()).collect();
        let changed = items.filter(|items| first || *items != self.items);
        self.items = changed.clone().unwrap_or_else(|| std::mem::take(&mut self.items));
        News { items: changed, lines }
    }

    fn failure(&mut self, why: &str, fate: &'static str) -> Line {
        self.failures = self.failures.saturating_add(1);
        self.failure = Some(why.to_owned());
        let weight = if self.failures > LOUD_FAILURES { Weight::Detail } else { Weight::Error };
        let last =
            if self.failures == LOUD_FAILURES { " (said no more until it changes)" } else { "" };
        Line { fate, ..Line::new(weight, &self.url, format!("{why}{last}")) }
    }

    fn recovery(&mut self) -> Option<Line> {
        self.failure = None;
        let failures = std::mem::take(&mut self.failures);
        let said = format!("it answers again, after {failures} failures");
        (failures > 0).then(|| Line::new(Weight::News, &self.url, said))
    }
}

/// The body of a successful and complete response.
fn good_body(
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
