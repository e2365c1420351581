//! The CNI configuration of the pods' network: a bridge of the rig's own.

use serde_json::json;

use crate::rig::RigLayout;

/// The name of the network, under which leases are filed.
pub(super) const NETWORK: &str = "rig";

/// A bridge whose address is the pods' default route. Nothing is masqueraded: there is no network outside.
pub(super) fn bridge(layout: &RigLayout) -> String {
    let ranges = json!([[{ "subnet": layout.subnet() }]]);
    let addresses = json!({
        "type": "host-local",
        "ranges": ranges,
        "dataDir": layout.leases(),
        "routes": [{ "dst": "0.0.0.0/0" }],
    });
    json!({
        "cniVersion": "1.0.0",
        "name": NETWORK,
        "plugins": [
            {
                "type": "bridge",
                "bridge": layout.bridge(),
                "isGateway": true,
                "hairpinMode": true,
                "ipam": addresses,
            },
            {
                "type": "portmap",
                "capabilities": { "portMappings": true },
                "backend": "nftables",
                "snat": false,
            },
        ],
    })
    .to_string()
}
