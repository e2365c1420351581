//! What plugins are told of a pod: labels in `CNI_ARGS`, and capabilities for those that ask for them, both as containerd gives them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use oarsman_core::bandwidth::PodBandwidth;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::CniError;

/// The capabilities by the names that configurations have for them.
const PORT_MAPPINGS: &str = "portMappings";
const BANDWIDTH: &str = "bandwidth";
const DNS: &str = "dns";
const ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";
const CGROUP: &str = "cgroupPath";
/// Rates are averages: containerd lets so many bits through at once.
const BURST: u64 = u32::MAX as u64;

/// What plugins are told of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CniPodArguments {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub name: String,
    /// The UID of the pod.
    pub uid: String,
    /// The pod's annotations.
    pub annotations: BTreeMap<String, String>,
    /// The ports of the host that lead to the pod.
    pub port_mappings: Vec<CniPortMapping>,
    /// How much the pod may receive and send.
    pub bandwidth: PodBandwidth,
    /// How the pod resolves names, if that is given.
    pub dns: Option<CniDns>,
    /// The control group of the pod, if that is given.
    pub cgroup: String,
}

/// A port of the host that leads to the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CniPortMapping {
    /// The port of the host.
    pub host_port: u16,
    /// The port of the pod.
    pub container_port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: &'static str,
    /// The one address of the host at which it is open; none for all.
    #[serde(rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
}

/// How a pod resolves names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CniDns {
    /// The servers.
    pub servers: Vec<String>,
    /// The domains in which names are looked for.
    pub searches: Vec<String>,
    /// Options of the resolver.
    pub options: Vec<String>,
}

impl CniPodArguments {
    /// The pod as people call it.
    pub(crate) fn pod(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The labels of `CNI_ARGS`. One whose value could be taken for another label is refused.
    pub(crate) fn labels(&self, sandbox: &str) -> Result<Vec<(String, String)>, CniError> {
        let labels = [
            // Plugins that do not know a label are to ignore it.
            ("IgnoreUnknown", "1"),
            ("K8S_POD_NAMESPACE", &self.namespace),
            ("K8S_POD_NAME", &self.name),
            ("K8S_POD_INFRA_CONTAINER_ID", sandbox),
            ("K8S_POD_UID", &self.uid),
        ];
        let is_wrong = |value: &str| value.contains([';', '=', '\0', '\n']);
        if let Some((label, value)) = labels.iter().find(|(_, value)| is_wrong(value)) {
            let (label, value) = ((*label).to_owned(), (*value).to_owned());
            return Err(CniError::Label { label, value });
        }
        Ok(labels.map(|(label, value)| (label.to_owned(), value.to_owned())).to_vec())
    }

    /// All capabilities that can be given.
    pub(crate) fn capabilities(&self) -> Map<String, Value> {
        let mut all = Map::new();
        all.insert(ANNOTATIONS.to_owned(), json!(self.annotations));
        if !self.port_mappings.is_empty() {
            all.insert(PORT_MAPPINGS.to_owned(), json!(self.port_mappings));
        }
        if self.bandwidth != PodBandwidth::default() {
            all.insert(BANDWIDTH.to_owned(), bandwidth(self.bandwidth));
        }
        if let Some(dns) = &self.dns {
            all.insert(DNS.to_owned(), json!(dns));
        }
        if !self.cgroup.is_empty() {
            all.insert(CGROUP.to_owned(), json!(self.cgroup));
        }
        all
    }
}

fn bandwidth(of: PodBandwidth) -> Value {
    let burst = |rate: Option<u64>| rate.map_or(0, |_| BURST);
    json!({
        "ingressRate": of.ingress.unwrap_or_default(),
        "ingressBurst": burst(of.ingress),
        "egressRate": of.egress.unwrap_or_default(),
        "egressBurst": burst(of.egress),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> CniPodArguments {
        CniPodArguments {
            namespace: "default".to_owned(),
            name: "web-0".to_owned(),
            uid: "u-1".to_owned(),
            ..CniPodArguments::default()
        }
    }

    #[test]
    fn labels_are_those_of_containerd_and_cannot_make_others() {
        let labels = pod().labels("abc").unwrap();
        let text: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            text.join(";"),
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=abc;K8S_POD_UID=u-1"
        );
        for name in ["a;IP=10.0.0.1", "a=b", "a\0", "a\nb"] {
            let error = CniPodArguments { name: name.to_owned(), ..pod() }.labels("abc");
            assert!(error.unwrap_err().to_string().contains("K8S_POD_NAME"), "{name}");
        }
    }

    #[test]
    fn capabilities_are_given_for_what_the_pod_has() {
        let none = pod().capabilities();
        assert_eq!(none.keys().collect::<Vec<_>>(), [ANNOTATIONS]);
        let port = CniPortMapping {
            host_port: 8080,
            container_port: 80,
            protocol: "tcp",
            host_ip: "127.0.0.1".parse().ok(),
        };
        let all = CniPodArguments {
            annotations: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            port_mappings: vec![port.clone(), CniPortMapping { host_ip: None, ..port }],
            bandwidth: PodBandwidth { ingress: Some(1_000_000), egress: None },
            dns: Some(CniDns { servers: vec!["10.96.0.10".to_owned()], ..CniDns::default() }),
            cgroup: "/kubepods/podu-1".to_owned(),
            ..pod()
        }
        .capabilities();
        let wanted = json!({
            "io.kubernetes.cri.pod-annotations": { "a": "b" },
            "portMappings": [
                { "hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": "127.0.0.1" },
                { "hostPort": 8080, "containerPort": 80, "protocol": "tcp" },
            ],
            "bandwidth": {
                "ingressRate": 1_000_000, "ingressBurst": 4_294_967_295_u64, "egressRate": 0, "egressBurst": 0,
            },
            "dns": { "servers": ["10.96.0.10"], "searches": [], "options": [] },
            "cgroupPath": "/kubepods/podu-1",
        });
        assert_eq!(Value::Object(all), wanted);
    }
}
