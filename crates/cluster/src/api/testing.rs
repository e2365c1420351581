//! An API server in the hands of a test: each request waits until the test answers it.

use std::time::Duration;

use futures::SinkExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::channel::oneshot;
use futures::{Stream, StreamExt};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use hyper::http::{Method, Request, Response};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

type TestResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// A request that waits for its answer.
pub(super) struct TestRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) body: Value,
    answer: oneshot::Sender<Response<TestResponseBody>>,
}

/// Requests as they come.
pub(super) struct TestRequests(UnboundedReceiver<TestRequest>);

/// The other end of a watch.
pub(super) struct Watching(UnboundedSender<Result<Frame<Bytes>, BoxError>>);

/// A client whose requests come to the test.
pub(super) fn client() -> (Client, TestRequests) {
    let (sender, requests) = unbounded();
    let service = tower::service_fn(move |request: Request<Body>| {
        let sender = sender.clone();
        async move { ask(sender, request).await }
    });
    (Client::new(service, "default"), TestRequests(requests))
}

async fn ask(
    mut requests: UnboundedSender<TestRequest>,
    request: Request<Body>,
) -> Result<Response<TestResponseBody>, BoxError> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let (answer, answered) = oneshot::channel();
    let call = TestRequest {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        answer,
    };
    requests.send(call).await?;
    // A test that drops a call breaks its connection.
    Ok(answered.await?)
}

impl TestRequests {
    /// The next request. Time stands still in these tests unless all wait, so that a minute is soon over.
    pub(super) async fn next(&mut self) -> TestRequest {
        let call = tokio::time::timeout(Duration::from_secs(60), self.0.next()).await;
        call.expect("a call within a minute").expect("the client is there")
    }

    /// Whether nothing is asked for within that time.
    pub(super) async fn none_within(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.0.next()).await.is_err()
    }
}

impl TestRequest {
    pub(super) fn answer(self, status: u16, body: &Value) {
        self.answer_with(Response::builder().status(status), body);
    }

    /// A failure, as the API server puts it.
    pub(super) fn fail(self, status: u16, reason: &str) {
        self.answer(status, &failure(status, reason));
    }

    /// A plain refusal by a server that has too much to do.
    pub(super) fn busy(self, seconds: u64) {
        let head = Response::builder().status(429).header("Retry-After", seconds);
        self.answer_with(head, &json!("Too many requests, please try again later."));
    }

    fn answer_with(self, head: hyper::http::response::Builder, body: &Value) {
        let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
        self.send(head.body(body.boxed_unsync()).unwrap());
    }

    /// Begins to answer, and goes on.
    pub(super) fn stream(self) -> Watching {
        let (sender, lines) = unbounded();
        self.send(Response::new(streamed(lines)));
        Watching(sender)
    }

    fn send(self, response: Response<TestResponseBody>) {
        self.answer.send(response).expect("a client waits for the answer");
    }
}

fn streamed(
    lines: impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + 'static,
) -> TestResponseBody {
    StreamBody::new(lines).boxed_unsync()
}

impl Watching {
    pub(super) fn tell(&self, kind: &str, object: &impl serde::Serialize) {
        self.tell_text(&format!("{}\n", json!({ "type": kind, "object": object })));
    }

    pub(super) fn tell_text(&self, text: &str) {
        let frame = Frame::data(Bytes::from(text.to_owned()));
        self.0.unbounded_send(Ok(frame)).expect("a client reads");
    }

    /// Says that the list is complete.
    pub(super) fn end_of_list(&self, version: u64) {
        let annotations = json!({ "k8s.io/initial-events-end": "true" });
        let metadata =
            json!({ "resourceVersion": version.to_string(), "annotations": annotations });
        self.tell("BOOKMARK", &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata }));
    }

    pub(super) fn break_off(self) {
        self.0.unbounded_send(Err("connection reset".into())).expect("a client reads");
    }

    /// Whether the reader is gone.
    pub(super) fn is_left(&self) -> bool {
        self.0.is_closed()
    }
}

/// A failure, as the API server puts it.
pub(super) fn failure(code: u16, reason: &str) -> Value {
    let message = format!("{reason} it is");
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message })
}

/// A pod of that UID, as of that version.
pub(super) fn pod(uid: &str, version: u64, phase: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("web-{uid}")),
            namespace: Some("default".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        status: Some(PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() }),
        ..Pod::default()
    }
}
