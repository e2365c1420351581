//! Network configurations of CNI, as lists of plugins and as single ones.

use oarsman_cni::CniNetwork;

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "cni-networks", max_len: 4096, run, seeds };

fn run(bytes: &[u8]) {
    for network in [CniNetwork::parse_list(bytes), CniNetwork::parse_single(bytes)] {
        match network {
            Ok(network) => check(&network, bytes.len()),
            Err(error) => assert!(error.to_string().len() < 8192, "{error}"),
        }
    }
}

fn check(network: &CniNetwork, length: usize) {
    // Plugins make file names of these.
    for name in network.plugin_types().chain([network.name()]) {
        let is_plain = !name.is_empty() && !name.contains(['/', '\0']) && name != "..";
        assert!(is_plain, "{name:?}");
    }
    assert!((1..=64).contains(&network.plugin_types().count()));
    let kept = network.to_json().to_string();
    assert!(kept.len() < 1024 + 8 * length, "{} bytes of {length}", kept.len());
    let again = CniNetwork::parse_list(kept.as_bytes());
    assert_eq!(again.as_ref(), Ok(network), "what is kept for DEL is another network");
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"cniVersion":"1.0.0","name":"cbr0","plugins":[{"type":"flannel","delegate":{"hairpinMode":true,"isDefaultGateway":true}},{"type":"portmap","capabilities":{"portMappings":true}}]}"#,
        r#"{"cniVersion":"1.0.0","cniVersions":["1.0.0","1.1.0"],"name":"k8s-pod-network","disableCheck":"true","disableGC":true,"loadOnlyInlinedPlugins":true,"plugins":[{"type":"calico","mtu":0,"ipam":{"type":"calico-ipam"},"policy":{"type":"k8s"}},{"type":"bandwidth","capabilities":{"bandwidth":true}}]}"#,
        r#"{"cniVersion":"0.3.1","name":"one","type":"ptp","ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.1.0.0/16","rangeStart":"10.1.0.9"}]],"routes":[{"dst":"0.0.0.0/0"}]},"dns":{"nameservers":["10.1.0.1"]}}"#,
        r#"{"cniVersion":"1.1.0","name":"a","plugins":null}"#,
        r#"{"cniVersion":"0.2.0","name":"../a","plugins":[{"type":"../b","capabilities":[]}]}"#,
    ])
}
