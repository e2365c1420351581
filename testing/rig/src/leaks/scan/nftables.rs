//! Scans the packet filter of our network namespace.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::super::HostResource;

/// The portmap plugin makes this table with the first host port and keeps it.
const HOST_PORTS: &str = "cni_hostport";
/// The chains of that table which have rules of pods in them.
const OF_PODS: [&str; 2] = ["hostports", "hostip_hostports"];

pub(super) async fn scan() -> Result<BTreeSet<HostResource>> {
    let output = Command::new("nft").args(["-j", "list", "ruleset"]).output().await?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "nft cannot list its rules: {}", complaint.trim());
    objects(&serde_json::from_slice(&output.stdout)?)
}

fn objects(ruleset: &Value) -> Result<BTreeSet<HostResource>> {
    let objects = ruleset["nftables"].as_array().context("nft printed no list")?;
    let objects = objects.iter().filter_map(Value::as_object).flatten();
    Ok(objects
        .filter(|(kind, object)| *kind != "metainfo" && !is_kept(kind, object))
        .map(|(kind, object)| HostResource::Nftables { object: describe(kind, object) })
        .collect())
}

fn is_kept(kind: &str, object: &Value) -> bool {
    let of_pods = OF_PODS.iter().any(|chain| object["chain"] == *chain);
    match kind {
        "table" => object["name"] == HOST_PORTS,
        _ => object["table"] == HOST_PORTS && !of_pods,
    }
}

/// As nft would name it, and by its number where it has no name.
fn describe(kind: &str, object: &Value) -> String {
    let names = ["family", "table", "chain", "name", "comment"];
    let names = names.iter().filter_map(|field| object[field].as_str());
    let mut words: Vec<String> = names.map(str::to_owned).collect();
    words.insert(0, kind.to_owned());
    if object["name"].is_null() {
        words.push(format!("handle {}", object["handle"]));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_named_without_the_permanent_ones_of_host_ports() {
        let rows = [
            (json!({"metainfo": {"version": "1.0.6"}}), None),
            (json!({"table": {"family": "ip", "name": "x", "handle": 1}}), Some("table ip x")),
            (
                json!({"chain": {"family": "ip", "table": "x", "name": "c", "handle": 2}}),
                Some("chain ip x c"),
            ),
            (
                json!({"rule": {"family": "ip", "table": "x", "chain": "c", "handle": 3}}),
                Some("rule ip x c handle 3"),
            ),
            (json!({"table": {"family": "ip", "name": "cni_hostport", "handle": 4}}), None),
            (json!({"chain": {"table": "cni_hostport", "name": "hostports"}}), None),
            (json!({"rule": {"table": "cni_hostport", "chain": "output", "handle": 5}}), None),
            (
                json!({"rule": {"family": "ip", "table": "cni_hostport", "chain": "hostports",
                    "comment": "pod1", "handle": 6}}),
                Some("rule ip cni_hostport hostports pod1 handle 6"),
            ),
        ];
        for (object, expected) in rows {
            let found = objects(&json!({ "nftables": [object] })).unwrap();
            let expected = expected.map(|name| HostResource::Nftables { object: name.to_owned() });
            assert_eq!(found, expected.into_iter().collect(), "{object}");
        }
    }
}
