//! Settings that protect a node elsewhere and do nothing here yet, with what follows from that.

/// Fields, and the consequence of their having no effect. One that gets an effect is listed among those that have one, and is
/// never looked up here again.
const CONSEQUENCES: &[(&[&str], &str)] = &[
    (
        &["imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"],
        "images pulled with one tenant's credentials can be used by all pods",
    ),
    (
        &["protectKernelDefaults"],
        "kernel settings that differ from what a kubelet expects are neither refused nor changed",
    ),
    (
        &["allowedUnsafeSysctls"],
        "sysctls are not restricted: a pod can set every one that the runtime takes",
    ),
    (
        &[
            "evictionHard",
            "evictionSoft",
            "evictionSoftGracePeriod",
            "evictionMaxPodGracePeriod",
            "evictionMinimumReclaim",
            "mergeDefaultEvictionSettings",
        ],
        "no pod is evicted: one pod can use up the node's memory, disk and processes",
    ),
    (
        &["containerLogMaxSize", "containerLogMaxFiles"],
        "container logs are not rotated: one container can fill the disk",
    ),
    (
        &["imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMaximumGCAge"],
        "unused images are not removed: pulls can fill the disk",
    ),
    (
        &["makeIPTablesUtilChains"],
        "no firewall chain is made: services of the node on 127.0.0.1 can be reached by neighbours on the network if the kernel routes such packets",
    ),
    (&["userNamespaces"], "pods with hostUsers: false do not start: no user namespaces are given"),
    (
        &["enforceNodeAllocatable", "systemReservedCgroup", "kubeReservedCgroup"],
        "pods together can use what is reserved for the system",
    ),
    (&["reservedMemory", "qosReserved"], "no memory is set aside for pods that reserve it"),
    (&["tlsCurvePreferences"], "every key exchange of the TLS library is accepted"),
    (&["streamingConnectionIdleTimeout"], "streaming connections are not closed for being idle"),
    (&["kubeAPIQPS", "kubeAPIBurst"], "requests to the API server are not limited in rate"),
    (&["registryPullQPS", "registryBurst"], "image pulls are not limited in rate"),
    (&["featureGates"], "a protection that a feature gate turns on is not there"),
];

/// What follows from a field's having no effect, if it is one that protects the node or its pods.
pub(super) fn consequence(field: &str) -> Option<&'static str> {
    let row = CONSEQUENCES.iter().find(|(fields, _)| fields.contains(&field));
    row.map(|(_, consequence)| *consequence)
}

#[cfg(test)]
mod tests {
    use oarsman_kubelet_config::KubeletConfiguration;

    use super::*;

    #[test]
    fn a_setting_without_effect_is_told_with_its_consequence() {
        let images = consequence("imagePullCredentialsVerificationPolicy").unwrap();
        assert!(images.contains("can be used by all pods"));
        assert_eq!(consequence("volumeStatsAggPeriod"), None, "it protects nothing");
    }

    #[test]
    fn every_field_that_is_named_exists() {
        let known = serde_json::to_value(KubeletConfiguration::default()).unwrap();
        for field in CONSEQUENCES.iter().flat_map(|(fields, _)| *fields) {
            assert!(known.get(*field).is_some(), "{field}");
        }
    }
}
