//! Flags of fields that concern pods and their containers.

use super::deprecated;
use crate::flags::Flag;
use crate::flags::FlagKind::{Duration, Headers, List, Number, Switch, Text};

pub(super) static FLAGS: [Flag; 32] = [
    deprecated(
        "pod-manifest-path",
        Text,
        "staticPodPath",
        "A directory or file of pod manifests; empty for none.",
    ),
    deprecated("manifest-url", Text, "staticPodURL", "A URL of pod manifests; empty for none."),
    deprecated(
        "manifest-url-header",
        Headers,
        "staticPodURLHeader",
        "Headers that the URL is asked with.",
    ),
    deprecated(
        "file-check-frequency",
        Duration,
        "fileCheckFrequency",
        "How often manifests are looked at besides when they change.",
    ),
    deprecated(
        "http-check-frequency",
        Duration,
        "httpCheckFrequency",
        "How often the URL of manifests is asked.",
    ),
    deprecated(
        "sync-frequency",
        Duration,
        "syncFrequency",
        "How often everything on the node is counted.",
    ),
    deprecated(
        "container-runtime-endpoint",
        Text,
        "containerRuntimeEndpoint",
        "The socket of the container runtime, or `embedded`.",
    ),
    deprecated(
        "image-service-endpoint",
        Text,
        "imageServiceEndpoint",
        "The socket of the image service; empty if it is the runtime's.",
    ),
    deprecated(
        "runtime-request-timeout",
        Duration,
        "runtimeRequestTimeout",
        "How long an ordinary call to the runtime may take.",
    ),
    deprecated(
        "registry-qps",
        Number,
        "registryPullQPS",
        "How many pulls may begin in a second; 0 for any number.",
    ),
    deprecated("registry-burst", Number, "registryBurst", "How many pulls may begin at once."),
    deprecated(
        "serialize-image-pulls",
        Switch,
        "serializeImagePulls",
        "Whether images are pulled one at a time.",
    ),
    deprecated(
        "minimum-image-ttl-duration",
        Duration,
        "imageMinimumGCAge",
        "How long an unused image is kept at least.",
    ),
    deprecated(
        "image-gc-high-threshold",
        Number,
        "imageGCHighThresholdPercent",
        "How full the disk is when images begin to be removed.",
    ),
    deprecated(
        "image-gc-low-threshold",
        Number,
        "imageGCLowThresholdPercent",
        "How full the disk is when that ends.",
    ),
    deprecated(
        "container-log-max-size",
        Text,
        "containerLogMaxSize",
        "How large the log of a container grows before it is rotated.",
    ),
    deprecated(
        "container-log-max-files",
        Number,
        "containerLogMaxFiles",
        "How many files a log has at most.",
    ),
    deprecated("cluster-domain", Text, "clusterDomain", "The domain of the cluster."),
    deprecated("cluster-dns", List, "clusterDNS", "The cluster's name servers."),
    deprecated(
        "resolv-conf",
        Text,
        "resolvConf",
        "The file with the resolver that pods get; empty for none.",
    ),
    deprecated("max-pods", Number, "maxPods", "How many pods the node runs at most."),
    deprecated(
        "pods-per-core",
        Number,
        "podsPerCore",
        "How many pods it runs for each CPU at most; 0 for any number.",
    ),
    deprecated("pod-cidr", Text, "podCIDR", "The addresses of pods on a node without API server."),
    deprecated(
        "pod-max-pids",
        Number,
        "podPidsLimit",
        "How many processes a pod may have; -1 for as many as the node.",
    ),
    deprecated("runonce", Switch, "runOnce", "No longer possible; only false is taken."),
    deprecated(
        "hairpin-mode",
        Text,
        "hairpinMode",
        "How a pod reaches itself through its service; nothing looks at it any more.",
    ),
    deprecated(
        "make-iptables-util-chains",
        Switch,
        "makeIPTablesUtilChains",
        "Whether iptables chains are made that others rely on.",
    ),
    deprecated(
        "allowed-unsafe-sysctls",
        List,
        "allowedUnsafeSysctls",
        "Sysctls that pods may set besides the safe ones.",
    ),
    deprecated("volume-plugin-dir", Text, "volumePluginDir", "Where volume plugins of others lie."),
    deprecated(
        "volume-stats-agg-period",
        Duration,
        "volumeStatsAggPeriod",
        "How often volumes are measured; negative for never.",
    ),
    deprecated(
        "enable-controller-attach-detach",
        Switch,
        "enableControllerAttachDetach",
        "Whether a controller attaches volumes, and not the kubelet.",
    ),
    deprecated(
        "local-storage-capacity-isolation",
        Switch,
        "localStorageCapacityIsolation",
        "Whether use of the disk is counted and limited.",
    ),
];
