//! Who may ask the node server for what: our agent and the Go kubelet, by the same API server with RBAC.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::{ScenarioContext, under_test};
use oarsman_e2e::server_clients::AccessClient;
use oarsman_rig::{Implementation, Kubelet, KubeletOptions};
use serde_json::json;

const KUBELET_PORT: u16 = 10250;
/// How long an agent may take to end.
const ENDING: Duration = Duration::from_secs(20);

/// Single rights: a verb and a part of the node.
const RIGHTS: [(&str, &str); 13] = [
    ("get", "proxy"),
    ("create", "proxy"),
    ("update", "proxy"),
    ("get", "stats"),
    ("create", "stats"),
    ("get", "metrics"),
    ("get", "log"),
    ("get", "checkpoint"),
    ("create", "checkpoint"),
    ("get", "statusz"),
    ("get", "configz"),
    ("get", "pods"),
    ("get", "healthz"),
];

/// Requests about pods that do not exist: they change nothing where they are allowed.
const REQUESTS: [(&str, &str); 37] = [
    ("GET", "/healthz"),
    ("GET", "/healthz/ping"),
    ("GET", "/healthz/log"),
    ("GET", "/healthz/syncloop"),
    ("GET", "/pods"),
    ("POST", "/pods"),
    ("GET", "/runningpods/"),
    ("GET", "/configz"),
    ("GET", "/stats/summary"),
    ("POST", "/stats/summary"),
    ("GET", "/metrics"),
    ("GET", "/metrics/cadvisor"),
    ("GET", "/metrics/resource"),
    ("GET", "/metrics/probes"),
    ("GET", "/metrics/slis"),
    ("GET", "/logs/"),
    ("GET", "/logs/none.log"),
    ("POST", "/checkpoint/default/none/c"),
    ("GET", "/checkpoint/default/none/c"),
    ("GET", "/statusz"),
    ("GET", "/flagz"),
    ("GET", "/containerLogs/default/none/c"),
    ("GET", "/exec/default/none/c?command=ls&output=1"),
    ("POST", "/exec/default/none/c?command=ls&output=1"),
    ("GET", "/attach/default/none/c?output=1"),
    ("POST", "/attach/default/none/c?output=1"),
    ("GET", "/portForward/default/none"),
    ("POST", "/portForward/default/none"),
    ("GET", "/run/default/none/c?cmd=ls"),
    ("POST", "/run/default/none/c?cmd=ls"),
    ("PUT", "/debug/flags/v"),
    ("GET", "/debug/flags/v"),
    ("GET", "/debug/pprof/"),
    ("GET", "/debug/pprof/cmdline"),
    ("GET", "/nothing/here"),
    ("DELETE", "/nothing/here"),
    ("PATCH", "/pods"),
];

/// Where our agent means to differ: who reads may not act in a container, though a WebSocket begins with a GET (docs/deviations.md).
const ACTIONS: [&str; 4] = ["/exec/", "/attach/", "/portForward/", "/run/"];
/// The Go kubelet answers 404 there without a look at the client.
const UNKNOWN_PATH: &str = "/nothing/here";

/// A right to read is none to act; and what does not exist is told only to clients that may know it, not to everyone.
fn is_meant(client: &str, method: &str, path: &str) -> bool {
    is_meant_action(client, method, path) || path == UNKNOWN_PATH
}

fn is_meant_action(client: &str, method: &str, path: &str) -> bool {
    let acts = ACTIONS.iter().any(|root| path.starts_with(root));
    acts && method == "GET" && ["get-proxy", "create-proxy"].contains(&client)
}

/// Whether a request was let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessResult {
    Unauthenticated,
    Forbidden,
    Allowed,
}

type AccessResults = BTreeMap<(String, &'static str, &'static str), AccessResult>;

pub(super) async fn both_agents_authorize_every_request_alike_but_for_what_is_meant(
    cx: &ScenarioContext,
) -> Result<()> {
    let plane = cx.cluster().await?;
    let [ours, go] = [under_test()?, Implementation::Go]
        .map(|which| cx.join(&which, &KubeletOptions::default()));
    let (ours, go) = (ours?, go?);
    let cluster = TestCluster { plane, agent: Arc::clone(&ours) };
    let clients = clients(&cluster).await?;
    let of_ours = results(&cluster, &ours, &clients).await?;
    ours.terminate(ENDING).await?;
    let of_go = results(&cluster, &go, &clients).await?;

    for who in ["anonymous", "bad-token"] {
        let is_open = |((client, ..), result): (&(String, _, _), &AccessResult)| {
            client == who && *result != AccessResult::Unauthenticated
        };
        ensure!(!of_ours.iter().any(is_open), "{who} is let in: {of_ours:?}");
    }
    let differs = |row: &&(String, &str, &str)| of_ours.get(*row) != of_go.get(*row);
    let (meant, others): (Vec<_>, Vec<_>) = of_ours
        .keys()
        .filter(differs)
        .partition(|(client, method, path)| is_meant(client, method, path));
    let told: Vec<_> = others.iter().map(|row| (row, of_ours.get(*row), of_go.get(*row))).collect();
    ensure!(told.is_empty(), "ours and the Go kubelet's differ: {told:#?}");
    let (actions, unknown): (Vec<_>, Vec<_>) =
        meant.into_iter().partition(|(client, method, path)| is_meant_action(client, method, path));
    ensure!(actions.len() == 2 * ACTIONS.len(), "of the actions that differ, only: {actions:?}");
    ensure!(!unknown.is_empty(), "the Go kubelet tells everyone what does not exist");
    Ok(())
}

/// By name: without rights, and with a single one.
async fn clients(cluster: &TestCluster) -> Result<Vec<(String, AccessClient)>> {
    let server = SocketAddr::from((cluster.plane.node_address(), KUBELET_PORT));
    let by_certificate = |name: &str, user: &str, group: &str| {
        let certificate =
            cluster.plane.client_certificate(&format!("access-{name}"), user, group)?;
        Ok::<_, anyhow::Error>((
            name.to_owned(),
            AccessClient::new(server, Some(&certificate), None)?,
        ))
    };
    let mut clients = vec![
        ("anonymous".to_owned(), AccessClient::new(server, None, None)?),
        ("bad-token".to_owned(), AccessClient::new(server, None, Some("invented"))?),
        by_certificate("node", "system:node:other", "system:nodes")?,
        by_certificate("stranger", "stranger", "strangers")?,
    ];
    for (verb, part) in RIGHTS {
        let name = format!("{verb}-{part}");
        grant(cluster, &name, verb, part).await?;
        clients.push(by_certificate(&name, &name, "rowers")?);
    }
    Ok(clients)
}

async fn grant(cluster: &TestCluster, name: &str, verb: &str, part: &str) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let role = format!("access-{name}");
    cluster
        .apply(&json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
            "metadata": { "name": role },
            "rules": [{ "apiGroups": [""], "resources": [format!("nodes/{part}")], "verbs": [verb] }],
        }))
        .await?;
    cluster
        .apply(&json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
            "metadata": { "name": role },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": name }],
        }))
        .await
}

async fn results(
    cluster: &TestCluster,
    agent: &Kubelet,
    clients: &[(String, AccessClient)],
) -> Result<AccessResults> {
    agent.start()?;
    cluster.plane.until_node_is_ready(agent.name(), MAX_WAIT).await?;
    wait_until_answering(clients).await?;
    let mut results = AccessResults::new();
    for (name, client) in clients {
        for (method, path) in REQUESTS {
            let status = client.status(method, path).await?;
            ensure!(status != 429, "{name} is still refused as too frequent: {method} {path}");
            let result = match status {
                401 => AccessResult::Unauthenticated,
                403 => AccessResult::Forbidden,
                _ => AccessResult::Allowed,
            };
            results.insert((name.clone(), method, path), result);
        }
    }
    Ok(results)
}

/// A node may be Ready before its server listens.
async fn wait_until_answering(clients: &[(String, AccessClient)]) -> Result<()> {
    let Some((_, first)) = clients.first() else { return Ok(()) };
    let look = async || Ok(first.status("GET", "/healthz").await.unwrap_or_default());
    eventually(MAX_WAIT, "the node server answers", look, |status| *status != 0).await.map(drop)
}
