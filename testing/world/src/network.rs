//! Servers in memory: what each answers, how long it takes, and whether it speaks TLS.
//!
//! A pod whose process listens answers too, as the actor does. Servers outlive agents; an agent asks them by [`connect`],
//! over a line where calls are slow and fail.

mod client;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oarsman_net::{HttpAnswer, HttpGet, NetworkError, Scheme, Trust};
use oarsman_sync::latest as watch;
use tokio::time::sleep;

pub use client::connect;

use crate::dice::Chance;
use crate::line::Service;
use crate::lock;
use crate::runtime::FakeRuntime;
use crate::trace::{Entry, Trace};

/// The fake network; clones are the same network.
#[derive(Clone)]
pub struct FakeNetwork(Arc<Inner>);

struct Inner {
    trace: Trace,
    runtime: FakeRuntime,
    /// Never held over an await.
    state: Mutex<State>,
    /// Counts how often the calls under way were broken.
    resets: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    servers: BTreeMap<(String, u16), Server>,
    asked: Vec<HttpGet>,
}

/// What listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// What it speaks.
    pub speaks: Speech,
    /// What it answers, by path and query; anything else is 404.
    pub pages: BTreeMap<String, Page>,
}

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// HTTP without TLS, also to those who want it with.
    Http,
    /// TLS with a certificate that the machine's authorities vouch for.
    Https,
    /// TLS with a certificate that nobody vouches for.
    SelfSigned,
}

/// What is answered to those who ask for one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// How long it takes; it may be longer than anybody waits.
    pub delay: Duration,
}

impl Server {
    /// A server without pages.
    pub fn new(speaks: Speech) -> Self {
        Self { speaks, pages: BTreeMap::new() }
    }

    /// The same server with this page too.
    #[must_use]
    pub fn with(mut self, path_and_query: &str, page: Page) -> Self {
        self.pages.insert(path_and_query.to_owned(), page);
        self
    }
}

impl Page {
    /// A page that is there at once.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), delay: Duration::ZERO }
    }

    /// The same page, after so long.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl FakeNetwork {
    /// A network without servers, but for the pods of that runtime.
    pub fn new(trace: Trace, runtime: FakeRuntime) -> Self {
        let (state, resets) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { trace, runtime, state, resets }))
    }

    /// Puts a server there, in place of the one before.
    pub fn serve(&self, host: &str, port: u16, server: Server) {
        lock(&self.0.state).servers.insert((host.to_owned(), port), server);
    }

    /// Takes the server away: whoever asks is refused.
    pub fn refuse(&self, host: &str, port: u16) {
        lock(&self.0.state).servers.remove(&(host.to_owned(), port));
    }

    /// What reached a server, in order.
    pub fn asked(&self) -> Vec<HttpGet> {
        lock(&self.0.state).asked.clone()
    }

    /// What a server does with a request.
    async fn answer(&self, request: HttpGet) -> Result<HttpAnswer, NetworkError> {
        let server = self.server(&request).ok_or_else(|| refused(&request))?;
        let page = admit(&server, &request)?;
        self.0.trace.append(Entry::Asked { url: request.url() });
        lock(&self.0.state).asked.push(request.clone());
        sleep(page.delay).await;
        Ok(cut(page, request.body_limit))
    }

    fn server(&self, request: &HttpGet) -> Option<Server> {
        let HttpGet { host, port, .. } = request;
        let there = lock(&self.0.state).servers.get(&(host.clone(), *port)).cloned();
        there.or_else(|| self.0.runtime.listens(host, *port).then(|| actor(request)))
    }
}

/// What a process that performs `listen` is: it says the same to everybody.
fn actor(request: &HttpGet) -> Server {
    Server::new(Speech::Http).with(&request.path_and_query, Page::new(200, "ok\n"))
}

fn refused(request: &HttpGet) -> NetworkError {
    NetworkError::Unreachable { url: request.url(), why: "connection refused".to_owned() }
}

/// The page, once both sides have found a common language.
fn admit(server: &Server, request: &HttpGet) -> Result<Page, NetworkError> {
    let url = request.url();
    match (server.speaks, request.scheme, request.trust) {
        (Speech::Http, Scheme::Https, _) => return Err(NetworkError::PlainHttp { url }),
        (Speech::SelfSigned, Scheme::Https, Trust::System) => {
            return Err(NetworkError::Tls { url, why: "unknown issuer".to_owned() });
        }
        (Speech::Https | Speech::SelfSigned, Scheme::Http, _) => {
            return Ok(Page::new(400, "this server speaks HTTPS\n"));
        }
        _ => {}
    }
    let page = server.pages.get(&request.path_and_query).cloned();
    Ok(page.unwrap_or_else(|| Page::new(404, "not found\n")))
}

fn cut(page: Page, limit: usize) -> HttpAnswer {
    let Page { status, mut body, .. } = page;
    let whole = body.len() <= limit;
    body.truncate(limit);
    HttpAnswer { status, headers: Vec::new(), body, whole }
}

impl Service for FakeNetwork {
    /// Servers do not go away; only what is under way fails.
    fn restart(&self, _: Duration, _: Chance) {
        self.0.resets.send_modify(|count| *count += 1);
    }

    fn outages(&self) -> watch::Receiver<u64> {
        self.0.resets.subscribe()
    }
}
