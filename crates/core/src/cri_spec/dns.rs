//! How a pod resolves names: the cluster's servers, the node's, or its own.

mod limits;
mod resolv_conf;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{Pod, PodDNSConfig};
use oarsman_cri_types::v1::DnsConfig;

pub use limits::{DnsWarning, check_limits_for_resolv_conf};

use super::error::ConfigError;
use crate::pod::PodExt;

/// What the node knows about names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeDns {
    /// `clusterDNS` of the configuration.
    pub servers: Vec<String>,
    /// The cluster's domain, such as `cluster.local`.
    pub domain: String,
    /// Whether there is a cluster that could have servers. Where there is none, that none are known is no news.
    pub has_cluster: bool,
}

/// A pod's resolver, and what there is to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolver {
    /// The name servers, searches and options that the runtime writes to resolv.conf.
    pub config: DnsConfig,
    /// Warnings to record as events of the pod.
    pub warnings: Vec<DnsWarning>,
}

/// Whose settings a pod begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Cluster,
    Node,
    Nothing,
}

/// The pod's resolver. `resolv_conf` is the text of the node's file, none when pods do not get it; `node_ips` tell which family this
/// machine speaks.
pub fn resolver(
    pod: &Pod,
    node: &NodeDns,
    resolv_conf: Option<&str>,
    node_ips: &[String],
) -> Result<Resolver, ConfigError> {
    let host = resolv_conf::parse(resolv_conf.unwrap_or_default())?;
    let mut warnings = Vec::new();
    let mut base = base(pod);
    if base == Base::Cluster && node.servers.is_empty() {
        warnings.extend(node.has_cluster.then_some(DnsWarning::NoClusterServers));
        base = Base::Node;
    }
    let mut config = match base {
        Base::Nothing => DnsConfig::default(),
        Base::Cluster => cluster_dns(pod, node, host),
        Base::Node if resolv_conf.is_none() => loopback_only(node_ips),
        Base::Node => host,
    };
    if let Some(wanted) = pod.spec().and_then(|spec| spec.dns_config.as_ref()) {
        add(&mut config, wanted);
    }
    warnings.extend(limits::fit(&mut config));
    Ok(Resolver { config, warnings })
}

fn base(pod: &Pod) -> Base {
    match pod.spec().and_then(|spec| spec.dns_policy.as_deref()) {
        Some("None") => Base::Nothing,
        Some("Default") => Base::Node,
        Some("ClusterFirst") if pod.host_network() => Base::Node,
        _ => Base::Cluster,
    }
}

/// The node's options are dropped, its search domains come last.
fn cluster_dns(pod: &Pod, node: &NodeDns, host: DnsConfig) -> DnsConfig {
    let (namespace, domain) = (pod.full_name().namespace, &node.domain);
    let mut searches = match domain.as_str() {
        "" => Vec::new(),
        _ => vec![format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.clone()],
    };
    searches.extend(host.searches);
    DnsConfig {
        servers: node.servers.clone(),
        searches: without_repeats(searches),
        options: vec!["ndots:5".to_owned()],
    }
}

/// Only this machine may be asked, and no domain is searched.
fn loopback_only(node_ips: &[String]) -> DnsConfig {
    let local = |ip: &String| if ip.contains(':') { "::1" } else { "127.0.0.1" }.to_owned();
    let mut servers: Vec<String> = node_ips.iter().map(local).collect();
    if servers.is_empty() {
        servers.push("127.0.0.1".to_owned());
    }
    DnsConfig { servers, searches: vec![".".to_owned()], options: Vec::new() }
}

/// Adds what the pod itself wants; its options replace those of the same name.
fn add(config: &mut DnsConfig, wanted: &PodDNSConfig) {
    config.servers.extend(wanted.nameservers.iter().flatten().cloned());
    config.searches.extend(wanted.searches.iter().flatten().cloned());
    config.servers = without_repeats(std::mem::take(&mut config.servers));
    config.searches = without_repeats(std::mem::take(&mut config.searches));
    for option in wanted.options.iter().flatten() {
        let name = option.name.clone().unwrap_or_default();
        let value = option.value.as_deref().filter(|value| !value.is_empty());
        let text = value.map_or_else(|| name.clone(), |value| format!("{name}:{value}"));
        resolv_conf::set_option(&mut config.options, text);
    }
}

fn without_repeats(texts: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    texts.into_iter().filter(|text| seen.insert(text.clone())).collect()
}
