//! What resolvers can bear, and what to say when it is too much.

use k8s_openapi::api::core::v1::Pod;
use oarsman_cri_types::v1::DnsConfig;

use super::resolv_conf;
use crate::event::PodEvent;
use crate::pod::PodExt;

const SERVERS: usize = 3;
const SEARCHES: usize = 32;
const SEARCH_CHARACTERS: usize = 2048;
/// Some resolvers abort on a longer one.
const LONGEST_SEARCH: usize = 253;
/// As many search domains come from the cluster.
const CLUSTER_SEARCHES: usize = 3;

/// A problem with a pod's resolver, to be recorded as an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsWarning {
    /// The pod wants the cluster's servers, and none are known.
    NoClusterServers,
    /// Too many servers; these are left.
    Servers(String),
    /// Too many search domains, or too long ones; these are left.
    Searches(String),
}

const NO_CLUSTER_SERVERS: &str = "kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. Falling back to \"Default\" policy.";

impl DnsWarning {
    /// What the pod's owner is told.
    pub fn event(&self, pod: &Pod) -> PodEvent {
        match self {
            Self::NoClusterServers => {
                let (name, uid) = (pod.full_name(), pod.uid());
                let pod = format!("{}_{}({uid})", name.name, name.namespace);
                let message = format!("pod: {pod:?}. {NO_CLUSTER_SERVERS}");
                PodEvent::warning("MissingClusterDNS", message)
            }
            Self::Servers(left) => PodEvent::warning(
                "DNSConfigForming",
                format!(
                    "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {left}"
                ),
            ),
            Self::Searches(left) => PodEvent::warning(
                "DNSConfigForming",
                format!(
                    "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {left}"
                ),
            ),
        }
    }
}

/// Cuts what is too much.
pub(super) fn fit(config: &mut DnsConfig) -> Vec<DnsWarning> {
    let mut warnings = Vec::new();
    if config.servers.len() > SERVERS {
        config.servers.truncate(SERVERS);
        warnings.push(DnsWarning::Servers(config.servers.join(" ")));
    }
    let before = config.searches.len();
    config.searches.truncate(SEARCHES);
    config.searches.retain(|search| search.len() <= LONGEST_SEARCH);
    while line(&config.searches) > SEARCH_CHARACTERS {
        config.searches.pop();
    }
    if config.searches.len() < before {
        warnings.push(DnsWarning::Searches(config.searches.join(" ")));
    }
    warnings
}

/// What is wrong with the node's file for every pod that has its search domains added: the message of a warning
/// `CheckLimitsForResolvConf` about the node.
pub fn check_limits_for_resolv_conf(
    path: &str,
    text: &str,
    cluster_domain: &str,
) -> Option<String> {
    let searches = match resolv_conf::parse(text) {
        Ok(config) => config.searches,
        Err(error) => return Some(error.to_string()),
    };
    let room = if cluster_domain.is_empty() { SEARCHES } else { SEARCHES - CLUSTER_SEARCHES };
    if searches.len() > room {
        Some(format!("{path}: {} search domains, of which pods can have {room}", searches.len()))
    } else if let Some(long) = searches.iter().find(|search| search.len() > LONGEST_SEARCH) {
        Some(format!("{path}: the search domain {long} is longer than {LONGEST_SEARCH} characters"))
    } else if line(&searches) > SEARCH_CHARACTERS {
        Some(format!("{path}: the search line is longer than {SEARCH_CHARACTERS} characters"))
    } else {
        None
    }
}

/// The length of the search line.
fn line(searches: &[String]) -> usize {
    searches.join(" ").len()
}
