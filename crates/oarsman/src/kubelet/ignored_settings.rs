//! Fields and flags that are accepted and validated, but have no effect yet, or only a part of it.

use oarsman_kubelet_config::LoadedConfig;
use oarsman_kubelet_config::flags::{ParsedFlags, ProgramFlags};

/// Fields that have their whole effect.
const IMPLEMENTED: &[&str] = &[
    "address",
    "allowedUnsafeSysctls",
    "authentication",
    "authorization",
    "cgroupRoot",
    "clusterDNS",
    "clusterDomain",
    "configMapAndSecretChangeDetectionStrategy",
    "containerLogMaxFiles",
    "containerLogMaxSize",
    "containerLogMaxWorkers",
    "containerLogMonitorInterval",
    "containerRuntimeEndpoint",
    "cpuCFSQuota",
    "cpuCFSQuotaPeriod",
    "crashLoopBackOff",
    "enableDebugFlagsHandler",
    "enableDebuggingHandlers",
    "enableProfilingHandler",
    "enableServer",
    "enableSystemLogHandler",
    "enableSystemLogQuery",
    "eventBurst",
    "eventRecordQPS",
    "failCgroupV1",
    "failSwapOn",
    "fileCheckFrequency",
    "healthzBindAddress",
    "healthzPort",
    "httpCheckFrequency",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "imageMaximumGCAge",
    "imageMinimumGCAge",
    "imagePullCredentialsVerificationPolicy",
    "imageServiceEndpoint",
    "kubeAPIBurst",
    "kubeAPIQPS",
    "maxOpenFiles",
    "maxParallelImagePulls",
    "maxPods",
    "memorySwap",
    "nodeLeaseDurationSeconds",
    "nodeStatusMaxImages",
    "nodeStatusReportFrequency",
    "nodeStatusUpdateFrequency",
    "oomScoreAdj",
    "podLogsDir",
    "podPidsLimit",
    "podsPerCore",
    "port",
    "preloadedImagesVerificationAllowlist",
    "providerID",
    "readOnlyPort",
    "registerNode",
    "registerWithTaints",
    "registryBurst",
    "registryPullQPS",
    "resolvConf",
    "rotateCertificates",
    "runOnce",
    "runtimeRequestTimeout",
    "seccompDefault",
    "serializeImagePulls",
    "serverTLSBootstrap",
    "singleProcessOOMKill",
    "staticPodPath",
    "staticPodURL",
    "staticPodURLHeader",
    "streamingConnectionIdleTimeout",
    "syncFrequency",
    "tlsCertFile",
    "tlsCipherSuites",
    "tlsMinVersion",
    "tlsPrivateKeyFile",
    "tracing",
    "userNamespaces",
];

/// Feature gates that have an effect, and the names that stand for many of them; tests of `core::features` have those of fields of pods.
const GATES: &[&str] = &[
    "AllAlpha",
    "AllBeta",
    "ClusterTrustBundleProjection",
    "ComponentFlagz",
    "ComponentStatusz",
    "ContainerCheckpoint",
    "ContainerRestartRules",
    "ContainerStopSignals",
    "EnvFiles",
    "HostnameOverride",
    "KubeletCrashLoopBackOffMax",
    "KubeletEnsureSecretPulledImages",
    "KubeletServiceAccountTokenForCredentialProviders",
    "NodeDeclaredFeatures",
    "NodeLogQuery",
    "PodCertificateRequest",
    "PodLevelResources",
    "PodReadyToStartContainersCondition",
    "ReloadKubeletServerCertificateFile",
    "RestartAllContainersOnContainerExits",
    "RotateKubeletServerCertificate",
];

/// Fields of which only a part has an effect, and what is missing.
const PARTIAL: &[(&str, &str)] = &[
    ("cgroupDriver", "with systemd, cgroups have systemd's names but are made without it"),
    (
        "enableControllerAttachDetach",
        "only the annotation of the node is set: there are no volumes to attach yet",
    ),
    (
        "evictionHard",
        "it lowers what the node has for pods, but no pod is evicted: one pod can use up the node's memory, disk and processes",
    ),
    ("kubeReserved", "pods are admitted to what is left, but together they can use more than that"),
    (
        "localStorageCapacityIsolation",
        "ephemeral storage is counted at admission, but no limit of it is enforced",
    ),
    ("logging", "flushFrequency and options have no effect"),
    ("reservedSystemCPUs", "pods are admitted to what is left, but run on all CPUs"),
    (
        "systemReserved",
        "pods are admitted to what is left, but together they can use more than that",
    ),
];

/// The fields that are set and have only a part of their effect, with what is missing.
pub(super) fn partial(loaded: &LoadedConfig) -> Vec<(&'static str, &'static str)> {
    let written = loaded.written();
    let is_written = |field: &str| written.iter().any(|written| written == field);
    PARTIAL.iter().copied().filter(|(field, _)| is_written(field)).collect()
}

fn has_an_effect(field: &str) -> bool {
    IMPLEMENTED.contains(&field) || PARTIAL.iter().any(|(partial, _)| *partial == field)
}

/// The fields, feature gates and flags that are set and have no effect.
pub(super) fn ignored(given: &ParsedFlags, loaded: &LoadedConfig) -> Vec<String> {
    let is_idle = |field: &String| field != "featureGates" && !has_an_effect(field);
    let fields = loaded.written().into_iter().filter(is_idle);
    fields.chain(gates(loaded)).chain(flags(&given.program)).collect()
}

fn gates(loaded: &LoadedConfig) -> impl Iterator<Item = String> {
    let switched = loaded.configuration.feature_gates.keys();
    let idle = switched.filter(|gate| !GATES.contains(&gate.as_str()));
    idle.map(|gate| format!("featureGates.{gate}"))
}

fn flags(program: &ProgramFlags) -> impl Iterator<Item = String> {
    let rows = [
        ("--lock-file", !program.lock_file.is_empty()),
        ("--runtime-cgroups", !program.runtime_cgroups.is_empty()),
    ];
    rows.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned())
}

#[cfg(test)]
mod tests {
    use oarsman_kubelet_config::flags;

    use super::*;

    fn loaded(words: &[&str]) -> (ParsedFlags, LoadedConfig) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let given = flags::parse(&words).unwrap();
        let loaded = oarsman_kubelet_config::load(None, &[], &given.layers).unwrap();
        (given, loaded)
    }

    #[test]
    fn a_field_has_its_whole_effect_or_a_part_or_none() {
        let (given, loaded) = loaded(&[
            "--max-pods=7",
            "--allowed-unsafe-sysctls=net.*",
            "--event-qps=5",
            "--system-reserved=cpu=100m",
            "--eviction-hard=memory.available<200Mi",
            "--eviction-max-pod-grace-period=5",
        ]);
        let partial: Vec<&str> = partial(&loaded).into_iter().map(|(field, _)| field).collect();
        assert_eq!(partial, ["evictionHard", "systemReserved"]);
        assert_eq!(ignored(&given, &loaded), ["evictionMaxPodGracePeriod"]);
    }

    #[test]
    fn no_field_is_in_two_lists_and_every_field_exists() {
        let known = serde_json::to_value(oarsman_kubelet_config::KubeletConfiguration::default());
        let known = known.unwrap();
        let fields = IMPLEMENTED.iter().copied().chain(PARTIAL.iter().map(|(field, _)| *field));
        let fields: Vec<&str> = fields.collect();
        for (at, field) in fields.iter().enumerate() {
            assert!(known.get(*field).is_some(), "{field} is no field");
            assert!(!fields[..at].contains(field), "{field} is listed twice");
        }
    }

    #[test]
    fn feature_gates_without_an_effect_are_named_one_by_one() {
        let gates = "--feature-gates=EnvFiles=false,EventedPLEG=true,ContainerStopSignals=true,ClusterTrustBundleProjection=true,\
                     KubeletServiceAccountTokenForCredentialProviders=false,PodCertificateRequest=true";
        let (given, loaded) = loaded(&[gates]);
        assert_eq!(ignored(&given, &loaded), ["featureGates.EventedPLEG"]);
    }
}
