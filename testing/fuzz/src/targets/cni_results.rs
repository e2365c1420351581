//! What CNI plugins answer: results of every version, and errors.

use oarsman_cni::{CniResult, CniVersion, PluginRefusal};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget = FuzzTarget { name: "cni-results", max_len: 4096, run, seeds };

fn run(bytes: &[u8]) {
    if let Some(refusal) = PluginRefusal::parse(bytes) {
        let shown = refusal.to_string();
        assert!(!shown.contains(char::is_control), "{shown:?}");
        assert!(shown.chars().count() < 3000, "{shown}");
    }
    for version in CniVersion::ALL {
        match CniResult::parse(bytes, version) {
            Ok(result) => check(&result, version),
            Err(error) => assert!(error.to_string().len() < 8192, "{error}"),
        }
    }
}

fn check(result: &CniResult, version: CniVersion) {
    let addresses = result.pod_addresses("eth0");
    assert!(addresses.len() <= 2, "{addresses:?}");
    assert!(addresses.iter().filter(|address| address.is_ipv4()).count() <= 1, "{addresses:?}");
    let kept = serde_json::to_vec(result.fields()).unwrap_or_default();
    let again = CniResult::parse(&kept, version);
    assert_eq!(again.as_ref(), Ok(result), "what the next plugin gets is another result");
    // By another version, too, it is the same for the pod.
    for other in CniVersion::ALL {
        let passed = CniResult::parse(&kept, other).map(|other| other.pod_addresses("eth0"));
        assert_eq!(passed.as_ref(), Ok(&addresses), "{version} as {other}");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"cniVersion":"1.0.0","interfaces":[{"name":"cni0","mac":"6e:07:2f:7d:3d:21"},{"name":"veth1","mtu":1500},{"name":"eth0","mac":"0a:58:0a:58:00:02","sandbox":"/run/netns/x"}],"ips":[{"interface":2,"address":"10.88.0.2/16","gateway":"10.88.0.1"},{"interface":2,"address":"fd00::2/64"}],"routes":[{"dst":"0.0.0.0/0","mtu":1400}],"dns":{"nameservers":["10.0.0.1"],"options":[]}}"#,
        r#"{"cniVersion":"0.4.0","interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"version":"4","address":"10.1.0.2/24","interface":0}],"dns":{}}"#,
        r#"{"cniVersion":"0.3.1","ips":[{"version":"6","address":"fd00::2/64"}]}"#,
        r#"{"ips":null,"interfaces":null}"#,
        "null",
        r#"{"cniVersion":"1.0.0","code":11,"msg":"no IP addresses available in range set","details":"10.88.0.0/16"}"#,
        r#"{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.2/24"}}"#,
        r#"{"ips":[{"address":"10.1.0.2/99","interface":7}]}"#,
    ])
}
