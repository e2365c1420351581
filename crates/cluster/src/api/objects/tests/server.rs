//! An API server in memory: objects by collection, watches, and numbered tokens.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::channel::mpsc::{UnboundedSender, unbounded};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

type FakeResponseBody = UnsyncBoxBody<Bytes, BoxError>;
type Lines = UnboundedSender<Result<Frame<Bytes>, BoxError>>;

/// The server; clones are the same one.
#[derive(Clone, Default)]
pub(super) struct FakeApiServer(Arc<Mutex<FakeApiServerState>>);

#[derive(Default)]
struct FakeApiServerState {
    version: u64,
    /// By path of the collection and name.
    objects: BTreeMap<(String, String), Value>,
    /// By path of the collection and name, with the empty name for all of it.
    watches: Vec<(String, String, Lines)>,
    /// What every call is answered with.
    failure: Option<u16>,
    /// The end of a path whose next request panics.
    panics_at: Option<String>,
    /// What was asked, in order.
    log: Vec<String>,
    /// The bodies of requests for tokens.
    asked: Vec<Value>,
}

impl FakeApiServer {
    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                assert!(!server.takes_panic(head.uri.path()), "a panic on purpose");
                Ok::<_, BoxError>(server.state().answer(
                    &head.method,
                    head.uri.path(),
                    head.uri.query(),
                    body,
                ))
            }
        });
        Client::new(service, "default")
    }

    /// The next request for such a path panics in the task that waits for its answer.
    pub(super) fn panic_at(&self, path: &str) {
        self.state().panics_at = Some(path.to_owned());
    }

    fn takes_panic(&self, path: &str) -> bool {
        let mut state = self.state();
        let is_meant = state.panics_at.as_ref().is_some_and(|at| path.ends_with(at.as_str()));
        is_meant && state.panics_at.take().is_some()
    }

    /// Stores an object and sends it to its watches.
    pub(super) fn put(&self, path: &str, mut object: Value) {
        let mut state = self.state();
        state.version += 1;
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let key = (path.to_owned(), name.clone());
        let kind = if state.objects.contains_key(&key) { "MODIFIED" } else { "ADDED" };
        state.tell(path, &name, kind, &object);
        state.objects.insert(key, object);
    }

    /// The objects of a collection.
    pub(super) fn objects(&self, path: &str) -> Vec<Value> {
        let state = self.state();
        let of_path = state.objects.iter().filter(|((at, _), _)| at == path);
        of_path.map(|(_, object)| object.clone()).collect()
    }

    pub(super) fn remove(&self, path: &str, name: &str) {
        let mut state = self.state();
        state.version += 1;
        let mut object = state.objects.remove(&(path.to_owned(), name.to_owned())).unwrap();
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.tell(path, name, "DELETED", &object);
    }

    /// Answers everything with that code from now on.
    pub(super) fn fail_with(&self, code: u16) {
        self.state().failure = Some(code);
    }

    pub(super) fn recover(&self) {
        self.state().failure = None;
    }

    /// Breaks every watch off.
    pub(super) fn cut(&self) {
        let watches = std::mem::take(&mut self.state().watches);
        for (_, _, lines) in watches {
            // Who does not read any more needs no breaking.
            lines.unbounded_send(Err("connection reset".into())).ok();
        }
    }

    /// Ends all watches with an error that their version is too old.
    pub(super) fn outdate(&self) {
        let status =
            json!({ "kind": "Status", "status": "Failure", "code": 410, "message": "too old" });
        let mut state = self.state();
        state.watches.iter().for_each(|(.., lines)| retry_after(lines, "ERROR", &status));
        state.watches.clear();
    }

    /// How many read a watch.
    pub(super) fn watchers(&self) -> usize {
        self.state().watches.iter().filter(|(.., lines)| !lines.is_closed()).count()
    }

    /// What was asked since this was asked last.
    pub(super) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    /// What was asked of tokens since this was asked last.
    pub(super) fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut self.state().asked)
    }

    fn state(&self) -> MutexGuard<'_, FakeApiServerState> {
        self.0.lock().unwrap()
    }
}

impl FakeApiServerState {
    fn answer(
        &mut self,
        method: &Method,
        path: &str,
        query: Option<&str>,
        body: Value,
    ) -> Response<FakeResponseBody> {
        let query = query.unwrap_or_default();
        let name = query.split('&').find_map(|part| part.strip_prefix("fieldSelector="));
        let name =
            name.and_then(|field| field.strip_prefix("metadata.name%3D")).unwrap_or_default();
        let verb = match (query.contains("watch=true"), path.ends_with("/token"), query) {
            (true, ..) => "watch",
            (_, true, _) => "token",
            _ if method == Method::POST => "create",
            (_, _, "") => "get",
            _ => "list",
        };
        let short = path.rsplit_once("/v1/").map_or(path, |(_, short)| short);
        self.log.push(format!("{verb} {short} {name}").trim_end().to_owned());
        if let Some(code) = self.failure {
            return refusal(code);
        }
        match verb {
            "watch" => self.watch(path, name),
            "token" => self.token(body),
            "create" => self.create(path, body),
            "get" => self.get(path),
            _ => self.list(path, name),
        }
    }

    fn list(&self, path: &str, name: &str) -> Response<FakeResponseBody> {
        let of_path = self.objects.iter().filter(|((at, of), _)| {
            at == path && [name, ""].contains(&if name.is_empty() { "" } else { of.as_str() })
        });
        let items: Vec<&Value> = of_path.map(|(_, object)| object).collect();
        let metadata = json!({ "resourceVersion": self.version.to_string() });
        whole(
            200,
            &json!({ "kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items }),
        )
    }

    fn get(&self, path: &str) -> Response<FakeResponseBody> {
        let (at, name) = path.rsplit_once('/').unwrap();
        match self.objects.get(&(at.to_owned(), name.to_owned())) {
            Some(object) => whole(200, object),
            None => refusal(404),
        }
    }

    /// Stores an object of a namespace where the list of all namespaces finds it, under a name of its own.
    fn create(&mut self, path: &str, mut object: Value) -> Response<FakeResponseBody> {
        self.version += 1;
        let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        let name = format!("{prefix}{}", self.version);
        object["metadata"]["name"] = json!(name);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let path = path.replace("/namespaces/ns", "");
        self.tell(&path, &name, "ADDED", &object);
        self.objects.insert((path, name), object.clone());
        whole(201, &object)
    }

    fn watch(&mut self, path: &str, name: &str) -> Response<FakeResponseBody> {
        let (sender, lines) = unbounded();
        self.watches.push((path.to_owned(), name.to_owned(), sender));
        Response::new(StreamBody::new(lines).boxed_unsync())
    }

    fn token(&mut self, mut body: Value) -> Response<FakeResponseBody> {
        self.version += 1;
        self.asked.push(body["spec"].clone());
        let token = format!("token {}", self.version);
        body["status"] = json!({ "token": token, "expirationTimestamp": "2026-01-01T00:00:00Z" });
        whole(201, &body)
    }

    fn tell(&self, path: &str, name: &str, kind: &str, object: &Value) {
        let watches = self.watches.iter();
        let hears = watches.filter(|(at, of, _)| at == path && (of == name || of.is_empty()));
        hears.for_each(|(.., lines)| retry_after(lines, kind, object));
    }
}

fn retry_after(lines: &Lines, kind: &str, object: &Value) {
    let text = format!("{}\n", json!({ "type": kind, "object": object }));
    // Who does not read any more misses nothing.
    lines.unbounded_send(Ok(Frame::data(Bytes::from(text)))).ok();
}

fn whole(code: u16, body: &Value) -> Response<FakeResponseBody> {
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
    Response::builder().status(code).body(body.boxed_unsync()).unwrap()
}

fn refusal(code: u16) -> Response<FakeResponseBody> {
    let message = format!("the answer is {code}");
    let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": "Because" });
    whole(code, &status)
}
