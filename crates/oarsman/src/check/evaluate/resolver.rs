//! Checks that pods can reach the name servers of the node's resolv.conf.

use crate::check::facts::resolver::{ResolverFacts, is_loopback};
use crate::check::finding::Finding;

const CHECK: &str = "resolv.conf";
/// Resolvers ignore further name servers.
const MOST_SERVERS: usize = 3;
/// The resolv.conf in which systemd-resolved lists its upstream servers.
const UPSTREAM_RESOLV_CONF: &str = "/run/systemd/resolve/resolv.conf";

pub(super) fn evaluate(resolver: Option<&ResolverFacts>) -> Vec<Finding> {
    let Some(resolver) = resolver else {
        return vec![Finding::ok(CHECK, "pods get none, as was configured")];
    };
    vec![finding(resolver)]
}

fn finding(resolver: &ResolverFacts) -> Finding {
    let path = resolver.path.display();
    let servers = match &resolver.servers {
        Ok(servers) => servers,
        Err(why) => {
            return Finding::warning(
                CHECK,
                format!("{path} cannot be read, so pods have no resolver: {why}"),
                "name another with resolvConf in the kubelet's configuration",
            );
        }
    };
    if servers.is_empty() {
        return Finding::warning(
            CHECK,
            format!("{path} names no name server: pods resolve nothing"),
            format!("echo nameserver ADDRESS >> {path}"),
        );
    }
    if servers.iter().all(|server| is_loopback(server)) {
        return Finding::warning(
            CHECK,
            format!(
                "{path} names only {}, which pods with a network of their own do not reach",
                servers.join(", ")
            ),
            format!(
                "write resolvConf: {UPSTREAM_RESOLV_CONF} into the kubelet's configuration (with systemd-resolved), or give pods \
                 their own with dnsPolicy: None and dnsConfig"
            ),
        );
    }
    if servers.len() > MOST_SERVERS {
        return Finding::warning(
            CHECK,
            format!("{path} names {} name servers, of which {MOST_SERVERS} count", servers.len()),
            format!("leave the {MOST_SERVERS} that matter in {path}"),
        );
    }
    Finding::ok(CHECK, format!("{path} names {}", servers.join(", ")))
}
