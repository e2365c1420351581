//! The rows: path, default, another value, an invalid one, and the fields that the other value needs besides.

use serde_json::{Value, json};

use super::Row;

/// A field that needs no others.
fn row(path: &'static str, default: Value, other: Value, bad: Value) -> Row {
    (path, default, other, bad, json!({}))
}

pub(super) fn rows() -> Vec<Row> {
    [server(), clients(), images_and_logs(), cgroups(), pods(), eviction(), node(), logging()]
        .concat()
}

fn server() -> Vec<Row> {
    vec![
        row("enableServer", json!(true), json!(false), json!("yes please")),
        row("address", json!("0.0.0.0"), json!("127.0.0.1"), json!("localhost")),
        row("port", json!(10250), json!(10251), json!(65536)),
        row("readOnlyPort", json!(0), json!(10255), json!(-1)),
        (
            "tlsCertFile",
            json!(""),
            json!("/pki/tls.crt"),
            json!(5),
            json!({"tlsPrivateKeyFile": "/pki/tls.key"}),
        ),
        (
            "tlsPrivateKeyFile",
            json!(""),
            json!("/pki/tls.key"),
            json!(5),
            json!({"tlsCertFile": "/pki/tls.crt"}),
        ),
        row("tlsCipherSuites", json!([]), json!(["TLS_AES_128_GCM_SHA256"]), json!(["TLS_ROT13"])),
        row("tlsCurvePreferences", json!([]), json!([29, 4588]), json!([1])),
        row("tlsMinVersion", json!(null), json!("VersionTLS13"), json!("VersionSSL3")),
        row("rotateCertificates", json!(false), json!(true), json!("true")),
        row("serverTLSBootstrap", json!(false), json!(true), json!(1)),
        row("authentication.x509.clientCAFile", json!(""), json!("/pki/ca.crt"), json!(false)),
        row("authentication.webhook.enabled", json!(true), json!(false), json!("no")),
        row("authentication.webhook.cacheTTL", json!("2m0s"), json!("1m0s"), json!("-1s")),
        row("authentication.anonymous.enabled", json!(false), json!(true), json!("no")),
        row("authorization.mode", json!("Webhook"), json!("AlwaysAllow"), json!("RBAC")),
        row("authorization.webhook.cacheAuthorizedTTL", json!("5m0s"), json!("10s"), json!("5")),
        row(
            "authorization.webhook.cacheUnauthorizedTTL",
            json!("30s"),
            json!("10s"),
            json!("-30s"),
        ),
        row("enableDebuggingHandlers", json!(true), json!(false), json!(0)),
        row("enableContentionProfiling", json!(false), json!(true), json!(0)),
        row("enableProfilingHandler", json!(true), json!(false), json!(0)),
        row("enableDebugFlagsHandler", json!(true), json!(false), json!(0)),
        row("enableSystemLogHandler", json!(true), json!(false), json!(0)),
        row("enableSystemLogQuery", json!(false), json!(true), json!(0)),
        row("healthzPort", json!(10248), json!(0), json!(70000)),
        row("healthzBindAddress", json!("127.0.0.1"), json!("::1"), json!("nowhere")),
        row("streamingConnectionIdleTimeout", json!("4h0m0s"), json!("5m0s"), json!("4 hours")),
        row("showHiddenMetricsForVersion", json!(""), json!("1.35"), json!("1.30")),
    ]
}

fn clients() -> Vec<Row> {
    vec![
        row("clusterDomain", json!(""), json!("cluster.local"), json!(1)),
        row("clusterDNS", json!([]), json!(["10.96.0.10"]), json!(["kube-dns"])),
        row("nodeStatusUpdateFrequency", json!("10s"), json!("20s"), json!("-20s")),
        row("nodeStatusReportFrequency", json!("5m0s"), json!("1m0s"), json!("often")),
        row("nodeLeaseDurationSeconds", json!(40), json!(10), json!(-1)),
        row("nodeStatusMaxImages", json!(50), json!(-1), json!(-2)),
        row(
            "contentType",
            json!("application/vnd.kubernetes.protobuf"),
            json!("application/json"),
            json!({}),
        ),
        row("kubeAPIQPS", json!(50), json!(5), json!(-5)),
        row("kubeAPIBurst", json!(100), json!(10), json!(-10)),
        row("eventRecordQPS", json!(50), json!(0), json!(-1)),
        row("eventBurst", json!(100), json!(1), json!(-100)),
        row(
            "configMapAndSecretChangeDetectionStrategy",
            json!("Watch"),
            json!("Get"),
            json!("Poll"),
        ),
        row("registerNode", json!(true), json!(false), json!("no")),
        row(
            "registerWithTaints",
            json!([]),
            json!([{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": null}]),
            json!([{"key": "a b", "effect": "NoSchedule"}]),
        ),
        row("providerID", json!(""), json!("aws:///eu/i-1"), json!(7)),
        row("podCIDR", json!(""), json!("10.88.0.0/24"), json!("10.88.0.0")),
        row(
            "tracing",
            json!(null),
            json!({"endpoint": "collector:4317", "samplingRatePerMillion": 100}),
            json!({"samplingRatePerMillion": -1}),
        ),
        row(
            "tracing.endpoint",
            json!(null),
            json!("unix:///run/otel.sock"),
            json!("http://collector"),
        ),
        row("tracing.samplingRatePerMillion", json!(null), json!(1000000), json!(1000001)),
        row("featureGates", json!({}), json!({"MemoryQoS": true}), json!({"NodeSwap": false})),
        row("hairpinMode", json!("promiscuous-bridge"), json!("none"), json!("loop")),
        row("makeIPTablesUtilChains", json!(true), json!(false), json!("off")),
        row("iptablesMasqueradeBit", json!(14), json!(31), json!(32)),
        row("iptablesDropBit", json!(15), json!(0), json!(-1)),
        row("enableControllerAttachDetach", json!(true), json!(false), json!("off")),
    ]
}

fn images_and_logs() -> Vec<Row> {
    vec![
        row("registryPullQPS", json!(5), json!(0), json!(-1)),
        row("registryBurst", json!(10), json!(20), json!(-2)),
        row(
            "imagePullCredentialsVerificationPolicy",
            json!("NeverVerifyPreloadedImages"),
            json!("AlwaysVerify"),
            json!("Sometimes"),
        ),
        (
            "preloadedImagesVerificationAllowlist",
            json!([]),
            json!(["registry.example/base/*"]),
            json!(["a*b"]),
            json!({"imagePullCredentialsVerificationPolicy": "NeverVerifyAllowlistedImages"}),
        ),
        row("imageMinimumGCAge", json!("2m0s"), json!("1m0s"), json!("-1m")),
        row("imageMaximumGCAge", json!("0s"), json!("1h0m0s"), json!("1m")),
        row("imageGCHighThresholdPercent", json!(85), json!(90), json!(101)),
        row("imageGCLowThresholdPercent", json!(80), json!(70), json!(85)),
        row("serializeImagePulls", json!(true), json!(false), json!("no")),
        row("maxParallelImagePulls", json!(null), json!(3), json!(0)),
        row(
            "containerRuntimeEndpoint",
            json!("unix:///run/containerd/containerd.sock"),
            json!("unix:///run/crio/crio.sock"),
            json!(12),
        ),
        row("imageServiceEndpoint", json!(""), json!("unix:///run/images.sock"), json!(12)),
        row("runtimeRequestTimeout", json!("2m0s"), json!("30s"), json!("-2m")),
        row("containerLogMaxSize", json!("10Mi"), json!("1Gi"), json!("10MB?")),
        row("containerLogMaxFiles", json!(5), json!(2), json!(1)),
        row("containerLogMaxWorkers", json!(1), json!(4), json!(0)),
        row("containerLogMonitorInterval", json!("10s"), json!("3s"), json!("2s")),
        row("podLogsDir", json!("/var/log/pods"), json!("/srv/logs"), json!("/srv/../logs")),
        row(
            "volumePluginDir",
            json!("/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"),
            json!("/opt/plugins"),
            json!([]),
        ),
        row("volumeStatsAggPeriod", json!("1m0s"), json!("-1s"), json!("never")),
    ]
}

fn cgroups() -> Vec<Row> {
    vec![
        row("kubeletCgroups", json!(""), json!("/kubelet"), json!(1)),
        ("systemCgroups", json!(""), json!("/system"), json!(1), json!({"cgroupRoot": "/"})),
        row("cgroupRoot", json!(""), json!("/kubepods-root"), json!(1)),
        (
            "cgroupsPerQOS",
            json!(true),
            json!(false),
            json!("no"),
            json!({"enforceNodeAllocatable": []}),
        ),
        row("cgroupDriver", json!("cgroupfs"), json!("systemd"), json!("docker")),
        row("cpuManagerPolicy", json!("none"), json!("static"), json!("dynamic")),
        row(
            "cpuManagerPolicyOptions",
            json!({}),
            json!({"full-pcpus-only": "true"}),
            json!({"full-pcpus": "true"}),
        ),
        row("cpuManagerReconcilePeriod", json!("10s"), json!("5s"), json!("-5s")),
        row("singleProcessOOMKill", json!(null), json!(true), json!("true")),
        row("memoryManagerPolicy", json!("None"), json!("Static"), json!("static")),
        row("topologyManagerPolicy", json!("none"), json!("single-numa-node"), json!("one")),
        row("topologyManagerScope", json!("container"), json!("pod"), json!("node")),
        row(
            "topologyManagerPolicyOptions",
            json!({}),
            json!({"prefer-closest-numa-nodes": "true"}),
            json!({"closest": "true"}),
        ),
        (
            "qosReserved",
            json!({}),
            json!({"memory": "50%"}),
            json!({"memory": "half"}),
            json!({"featureGates": {"QOSReserved": true}}),
        ),
        row("cpuCFSQuota", json!(true), json!(false), json!("no")),
        row("cpuCFSQuotaPeriod", json!("100ms"), json!("5ms"), json!("2s")),
        row("systemReserved", json!({}), json!({"cpu": "200m"}), json!({"gpu": "1"})),
        row("kubeReserved", json!({}), json!({"memory": "500Mi"}), json!({"memory": "-1Gi"})),
        row("reservedSystemCPUs", json!(""), json!("0-2,4"), json!("4-2")),
        row("systemReservedCgroup", json!(""), json!("/system"), json!(1)),
        row("kubeReservedCgroup", json!(""), json!("/kube"), json!(1)),
        row("enforceNodeAllocatable", json!(["pods"]), json!(["none"]), json!(["everything"])),
        row(
            "reservedMemory",
            json!([]),
            json!([{"numaNode": 0, "limits": {"memory": "1Gi"}}]),
            json!([{"numaNode": 0, "limits": {"cpu": "1"}}]),
        ),
        row("memoryThrottlingFactor", json!(0.9), json!(0.8), json!(1.5)),
        (
            "memoryReservationPolicy",
            json!("None"),
            json!("TieredReservation"),
            json!("Tiered"),
            json!({"featureGates": {"MemoryQoS": true}}),
        ),
        row("failCgroupV1", json!(true), json!(false), json!("no")),
        row("failSwapOn", json!(true), json!(false), json!("no")),
        row("memorySwap.swapBehavior", json!(null), json!("LimitedSwap"), json!("UnlimitedSwap")),
    ]
}

fn pods() -> Vec<Row> {
    vec![
        row("staticPodPath", json!(""), json!("/etc/kubernetes/manifests"), json!({})),
        row("staticPodURL", json!(""), json!("http://manifests"), json!(1)),
        row(
            "staticPodURLHeader",
            json!({}),
            json!({"X-Token": ["a", "b"]}),
            json!({"X-Token": "a"}),
        ),
        row("syncFrequency", json!("1m0s"), json!("30s"), json!("-30s")),
        row("fileCheckFrequency", json!("20s"), json!("1.5s"), json!("-1s")),
        row("httpCheckFrequency", json!("20s"), json!("2m0s"), json!("20")),
        row("maxPods", json!(110), json!(250), json!(-250)),
        row("podsPerCore", json!(0), json!(10), json!(-10)),
        row("podPidsLimit", json!(-1), json!(4096), json!("many")),
        row("resolvConf", json!("/etc/resolv.conf"), json!("/run/resolv.conf"), json!(1)),
        row("runOnce", json!(false), json!(false), json!(true)),
        row("seccompDefault", json!(false), json!(true), json!("RuntimeDefault")),
        row("allowedUnsafeSysctls", json!([]), json!(["kernel.shm*"]), json!(["*"])),
        row(
            "crashLoopBackOff.maxContainerRestartPeriod",
            json!("5m0s"),
            json!("1s"),
            json!("5m1s"),
        ),
        row("userNamespaces.idsPerPod", json!(65536), json!(131072), json!(65537)),
        row("localStorageCapacityIsolation", json!(true), json!(false), json!("no")),
    ]
}

fn eviction() -> Vec<Row> {
    vec![
        row(
            "evictionHard",
            json!({}),
            json!({"memory.available": "5%"}),
            json!({"memory.free": "5%"}),
        ),
        (
            "evictionSoft",
            json!({}),
            json!({"memory.available": "1Gi"}),
            json!({"memory.available": "0"}),
            json!({"evictionSoftGracePeriod": {"memory.available": "1m30s"}}),
        ),
        row(
            "evictionSoftGracePeriod",
            json!({}),
            json!({"memory.available": "1m30s"}),
            json!({"memory.available": "90"}),
        ),
        row("evictionPressureTransitionPeriod", json!("5m0s"), json!("1m0s"), json!("-1m")),
        row("evictionMaxPodGracePeriod", json!(0), json!(-1), json!("long")),
        row(
            "evictionMinimumReclaim",
            json!({}),
            json!({"imagefs.available": "2Gi"}),
            json!({"imagefs.available": "101%"}),
        ),
        row("mergeDefaultEvictionSettings", json!(false), json!(true), json!("yes")),
        row("kernelMemcgNotification", json!(false), json!(true), json!("yes")),
    ]
}

fn node() -> Vec<Row> {
    vec![
        row("oomScoreAdj", json!(-999), json!(-500), json!(-1001)),
        row("maxOpenFiles", json!(1000000), json!(4096), json!(-4096)),
        row("protectKernelDefaults", json!(false), json!(true), json!("yes")),
        row("shutdownGracePeriod", json!("0s"), json!("30s"), json!("500ms")),
        (
            "shutdownGracePeriodCriticalPods",
            json!("0s"),
            json!("10s"),
            json!("31s"),
            json!({"shutdownGracePeriod": "30s"}),
        ),
        row(
            "shutdownGracePeriodByPodPriority",
            json!([]),
            json!([{"priority": 10, "shutdownGracePeriodSeconds": 60}]),
            json!([{"priority": 10, "shutdownGracePeriodSeconds": -1}]),
        ),
    ]
}

fn logging() -> Vec<Row> {
    vec![
        row("logging.format", json!("text"), json!("json"), json!("xml")),
        row("logging.flushFrequency", json!("5s"), json!("1s"), json!("-1s")),
        row("logging.verbosity", json!(0), json!(4), json!(-1)),
        row(
            "logging.vmodule",
            json!([]),
            json!([{"filePattern": "pods*", "verbosity": 6}]),
            json!([{"filePattern": "a=b", "verbosity": 6}]),
        ),
        (
            "logging.options.text.splitStream",
            json!(false),
            json!(true),
            json!("yes"),
            json!({"featureGates": {"LoggingAlphaOptions": true}}),
        ),
        (
            "logging.options.text.infoBufferSize",
            json!("0"),
            json!("4Ki"),
            json!("-1"),
            json!({"featureGates": {"LoggingAlphaOptions": true}}),
        ),
        (
            "logging.options.json.splitStream",
            json!(false),
            json!(true),
            json!("yes"),
            json!({"featureGates": {"LoggingAlphaOptions": true}}),
        ),
        (
            "logging.options.json.infoBufferSize",
            json!("0"),
            json!("4Ki"),
            json!("much"),
            json!({"featureGates": {"LoggingAlphaOptions": true}}),
        ),
    ]
}
