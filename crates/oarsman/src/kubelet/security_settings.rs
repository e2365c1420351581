//! Settings that protect a node elsewhere and do nothing here yet, with what follows from that.

use oarsman_kubelet_config::KubeletConfiguration;
use oarsman_kubelet_config::enums::KubeletAuthorizationMode;

/// Fields, and the consequence of their having no effect. One that gets an effect is listed among those that have one, and is
/// never looked up here again.
const CONSEQUENCES: &[(&[&str], &str)] = &[
    (
        &["protectKernelDefaults"],
        "kernel settings that differ from what a kubelet expects are neither refused nor changed",
    ),
    (
        &[
            "evictionSoft",
            "evictionSoftGracePeriod",
            "evictionMaxPodGracePeriod",
            "evictionMinimumReclaim",
            "mergeDefaultEvictionSettings",
        ],
        "no pod is evicted: one pod can use up the node's memory, disk and processes",
    ),
    (
        &["makeIPTablesUtilChains"],
        "no firewall chain is made: services of the node on 127.0.0.1 can be reached by neighbours on the network if the kernel routes such packets",
    ),
    (
        &["enforceNodeAllocatable", "systemReservedCgroup", "kubeReservedCgroup"],
        "pods together can use what is reserved for the system",
    ),
    (&["reservedMemory", "qosReserved"], "no memory is set aside for pods that reserve it"),
    (&["tlsCurvePreferences"], "every key exchange of the TLS library is accepted"),
    (&["featureGates"], "a protection that a feature gate turns on is not there"),
];

/// What follows from a field's having no effect, if it is one that protects the node or its pods.
pub(super) fn consequence(field: &str) -> Option<&'static str> {
    let row = CONSEQUENCES.iter().find(|(fields, _)| fields.contains(&field));
    row.map(|(_, consequence)| *consequence)
}

/// Settings that open the node to others, with what follows from them.
pub(super) fn opened(kubelet: &KubeletConfiguration) -> Vec<(&'static str, &'static str)> {
    let allows_all = kubelet.authorization.mode == KubeletAuthorizationMode::AlwaysAllow;
    let rows = [
        (
            kubelet.read_only_port != 0,
            "readOnlyPort",
            "every client that reaches the port can read the specs of all pods",
        ),
        (
            kubelet.authentication.anonymous.enabled,
            "authentication.anonymous.enabled",
            "clients without credentials are let in as system:anonymous",
        ),
        (
            allows_all,
            "authorization.mode",
            "AlwaysAllow: every client that is authenticated can do everything",
        ),
    ];
    rows.into_iter()
        .filter(|row| row.0)
        .map(|(_, field, consequence)| (field, consequence))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_without_effect_is_told_with_its_consequence() {
        let kernel = consequence("protectKernelDefaults").unwrap();
        assert!(kernel.contains("neither refused nor changed"));
        assert_eq!(consequence("volumeStatsAggPeriod"), None, "it protects nothing");
    }

    #[test]
    fn settings_that_open_the_node_are_told_with_their_consequences() {
        let mut kubelet = KubeletConfiguration::default();
        kubelet.authorization.mode = KubeletAuthorizationMode::Webhook;
        kubelet.authentication.anonymous.enabled = false;
        kubelet.read_only_port = 0;
        assert!(opened(&kubelet).is_empty());
        kubelet.authorization.mode = KubeletAuthorizationMode::AlwaysAllow;
        kubelet.authentication.anonymous.enabled = true;
        kubelet.read_only_port = 10255;
        let fields: Vec<_> = opened(&kubelet).into_iter().map(|(field, _)| field).collect();
        let want = ["readOnlyPort", "authentication.anonymous.enabled", "authorization.mode"];
        assert_eq!(fields, want);
    }

    #[test]
    fn every_field_that_is_named_exists() {
        let known = serde_json::to_value(KubeletConfiguration::default()).unwrap();
        for field in CONSEQUENCES.iter().flat_map(|(fields, _)| *fields) {
            assert!(known.get(*field).is_some(), "{field}");
        }
    }
}
