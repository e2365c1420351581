//! Counts calls to the runtime and writes to the API server, by the metrics of both.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use kube::Client;
use kube::core::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The counter of containerd's calls, and the services that are counted.
const CALLS: &str = "grpc_server_started_total";
const SERVICE: &str = "runtime.v1.";
/// The counter of the API server's requests, and those that are counted: an agent's writes for a pod.
const REQUESTS: &str = "apiserver_request_total";
const WRITES: [&str; 5] = ["POST", "PUT", "PATCH", "DELETE", "APPLY"];
const RESOURCES: [&str; 3] = ["pods", "events", "serviceaccounts"];

/// Reads both metrics.
pub(super) struct CallCounter<'a> {
    pub(super) api: &'a Client,
    pub(super) runtime: SocketAddr,
}

/// How often each CRI call was made, and how many writes there were; in all, or for each pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CallCounts {
    pub(super) calls: BTreeMap<String, f64>,
    pub(super) writes: f64,
}

impl CallCounter<'_> {
    pub(super) async fn read(&self) -> Result<CallCounts> {
        let request = Request::new("/metrics").list(&kube::api::ListParams::default())?;
        let requests = self.api.request_text(request).await.context("the API server's metrics")?;
        let calls = fetch(self.runtime).await.context("containerd's metrics")?;
        Ok(CallCounts { calls: calls_of(&calls), writes: writes_of(&requests) })
    }
}

/// By HTTP/1.0, whose response ends with the connection.
async fn fetch(from: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(from).await?;
    stream.write_all(b"GET /v1/metrics HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

impl CallCounts {
    pub(super) fn since(&self, before: &Self) -> Self {
        let calls =
            self.calls.iter().map(|(name, count)| (name.clone(), count - before.call(name)));
        let calls = calls.filter(|(_, count)| *count > 0.0).collect();
        Self { calls, writes: self.writes - before.writes }
    }

    /// Divided by the number of pods.
    #[expect(clippy::cast_precision_loss, reason = "a few dozen pods")]
    pub(super) fn each(self, pods: usize) -> Self {
        let each = |count: f64| count / pods as f64;
        let calls = self.calls.into_iter().map(|(name, count)| (name, each(count))).collect();
        Self { calls, writes: each(self.writes) }
    }

    pub(super) fn without_writes(self, writes: f64) -> Self {
        Self { writes: self.writes - writes, ..self }
    }

    /// The calls of that name.
    pub(super) fn call(&self, name: &str) -> f64 {
        self.calls.get(name).copied().unwrap_or_default()
    }

    /// All calls together.
    pub(super) fn all_calls(&self) -> f64 {
        self.calls.values().sum()
    }
}

/// The samples of a metric: their labels and values.
fn samples<'a>(text: &'a str, metric: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
    let lines = text.lines().filter_map(move |line| line.strip_prefix(metric)?.strip_prefix('{'));
    lines.filter_map(|rest| {
        let (labels, value) = rest.rsplit_once('}')?;
        Some((labels, value.trim().parse().ok()?))
    })
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = labels.split(',');
    parts.find_map(|part| part.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
}

fn calls_of(text: &str) -> BTreeMap<String, f64> {
    let mut calls = BTreeMap::<String, f64>::new();
    for (labels, count) in samples(text, CALLS) {
        let service = label(labels, "grpc_service").unwrap_or_default();
        if let Some(method) = label(labels, "grpc_method").filter(|_| service.starts_with(SERVICE))
        {
            *calls.entry(method.to_owned()).or_default() += count;
        }
    }
    calls
}

fn writes_of(text: &str) -> f64 {
    let is = |labels: &str, name: &str, values: &[&str]| {
        label(labels, name).is_some_and(|value| values.contains(&value))
    };
    let writes = samples(text, REQUESTS)
        .filter(|(labels, _)| is(labels, "verb", &WRITES) && is(labels, "resource", &RESOURCES));
    writes.map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_runtime_are_counted_and_those_of_others_not() {
        let text = "HTTP/1.0 200 OK\r\n\r\n# HELP grpc_server_started_total x\n\
            grpc_server_started_total{grpc_method=\"Version\",grpc_service=\"runtime.v1.RuntimeService\",grpc_type=\"unary\"} 3\n\
            grpc_server_started_total{grpc_method=\"Version\",grpc_service=\"containerd.services.version.v1.Version\",grpc_type=\"unary\"} 9\n\
            grpc_server_handled_total{grpc_method=\"Version\",grpc_service=\"runtime.v1.RuntimeService\",grpc_code=\"OK\"} 7\n";
        assert_eq!(calls_of(text), BTreeMap::from([("Version".to_owned(), 3.0)]));
    }

    #[test]
    fn writes_for_pods_are_counted_and_reads_and_leases_not() {
        let row = |resource: &str, verb: &str| {
            format!(
                "apiserver_request_total{{code=\"200\",resource=\"{resource}\",subresource=\"status\",verb=\"{verb}\"}} 2\n"
            )
        };
        let text =
            [row("pods", "PATCH"), row("pods", "GET"), row("leases", "PUT"), row("events", "POST")];
        assert!((writes_of(&text.concat()) - 4.0).abs() < f64::EPSILON);
    }

    #[test]
    fn what_came_since_is_shared_among_pods() {
        let counts = |version: f64, stop: f64, writes: f64| CallCounts {
            calls: BTreeMap::from([("Version".to_owned(), version), ("Stop".to_owned(), stop)]),
            writes,
        };
        let each =
            counts(10.0, 4.0, 20.0).since(&counts(6.0, 4.0, 4.0)).each(2).without_writes(1.0);
        assert_eq!(
            each,
            CallCounts { calls: BTreeMap::from([("Version".to_owned(), 2.0)]), writes: 7.0 }
        );
        assert!((each.all_calls() - 2.0).abs() < f64::EPSILON);
    }
}
