//! Queries of exec, attach, port-forward and logs, and the URL that a runtime gives for a stream.

use oarsman_core::log_request::ContainerLogOptions;
use oarsman_core::node_log_query::NodeLogQuery;
use oarsman_core::streaming_request::{RemoteCommandOptions, read_ports};
use oarsman_server::query;
use oarsman_streaming::connect::parse_url;

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "streaming-queries", max_len: 1024, run, seeds };

fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let query = query::read(&text);
    assert!(query.len() <= text.len(), "a query has more parts than characters");
    if let Ok(options) = RemoteCommandOptions::read(&query) {
        assert!(options.stdin || options.stdout || options.stderr, "no stream: {text}");
        assert!(!(options.tty && options.stderr), "a terminal with two outputs: {text}");
        let attached = options.clone().of_attach(true);
        assert!(attached.is_ok_and(|it| !it.stderr) || options.stderr, "{text}");
    }
    if let Ok(ports) = read_ports(&query) {
        assert!(!ports.is_empty() && !ports.contains(&0), "{text}");
    }
    // They must end, and refuse rather than panic; what they accept is bounded where it is used.
    drop(ContainerLogOptions::read(&query));
    drop(NodeLogQuery::read(&query));
    if let Ok((authority, target)) = parse_url(&text) {
        assert!(text.contains(&authority) && target.starts_with('/'), "{text}");
        assert!(!authority.contains('@'), "{text}");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "command=sh&command=-c&command=echo%20hi&input=1&output=1&error=1",
        "input=1&output=1&tty=1",
        "port=80,8080&port=443",
        "follow=true&tailLines=10&sinceTime=2026-01-01T00%3A00%3A00Z&limitBytes=5",
        "query=kubelet&pattern=x&boot=-1&tailLines=3",
        "http://127.0.0.1:40123/exec/AbC_-d",
        "http://[::1]:1/portforward/x?y=%31",
    ])
}
