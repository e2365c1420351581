//! Flags of older kubelets, which are refused with advice.

/// The minor version of Kubernetes that removed them, their names, and what to do instead.
const REMOVED: [(u32, &[&str], &str); 11] = [
    (
        35,
        &["pod-infra-container-image"],
        "set the image of sandboxes in the runtime's own configuration",
    ),
    (
        31,
        &["keep-terminated-pod-volumes"],
        "leave it out: volumes of pods that have ended are given back",
    ),
    (
        31,
        &["cloud-config"],
        "leave it out: clouds have controllers of their own; see --cloud-provider=external",
    ),
    (28, &["iptables-masquerade-bit", "iptables-drop-bit"], "leave it out: nothing looks at it"),
    (
        27,
        &["container-runtime"],
        "leave it out: every runtime is a remote one; see --container-runtime-endpoint",
    ),
    (27, &["master-service-namespace"], "leave it out"),
    (
        26,
        &[
            "add-dir-header",
            "alsologtostderr",
            "log-backtrace-at",
            "log-dir",
            "logtostderr",
            "one-output",
            "skip-headers",
            "skip-log-headers",
            "stderrthreshold",
        ],
        "leave it out: lines go to stderr, or to the file of --log-file",
    ),
    (
        24,
        &["network-plugin", "network-plugin-mtu", "cni-cache-dir", "non-masquerade-cidr"],
        "set up the network of pods in the runtime's own configuration; see --pod-network for the embedded one",
    ),
    (
        24,
        &[
            "docker-endpoint",
            "image-pull-progress-deadline",
            "experimental-dockershim-root-directory",
        ],
        "leave it out: a runtime is reached by --container-runtime-endpoint",
    ),
    (24, &["dynamic-config-dir"], "use --config and --config-dir"),
    (
        15,
        &["allow-privileged"],
        "leave it out: who may make privileged pods is for admission to say",
    ),
];

/// The message for a removed flag.
pub(super) fn removed(name: &str) -> Option<String> {
    let (since, _, instead) = REMOVED.iter().find(|(_, names, _)| names.contains(&name))?;
    Some(format!("is gone since Kubernetes 1.{since}: {instead}"))
}
