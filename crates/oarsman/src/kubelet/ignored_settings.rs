//! Fields and flags that are accepted and validated, but have no effect yet.

use oarsman_kubelet_config::LoadedConfig;
use oarsman_kubelet_config::flags::{ParsedFlags, ProgramFlags};

/// Fields that have an effect.
const IMPLEMENTED: &[&str] = &[
    "address",
    "authentication",
    "authorization",
    "cgroupDriver",
    "cgroupRoot",
    "clusterDNS",
    "clusterDomain",
    "configMapAndSecretChangeDetectionStrategy",
    "containerRuntimeEndpoint",
    "cpuCFSQuota",
    "cpuCFSQuotaPeriod",
    "crashLoopBackOff",
    "enableControllerAttachDetach",
    "enableDebuggingHandlers",
    "enableServer",
    "failCgroupV1",
    "failSwapOn",
    "fileCheckFrequency",
    "healthzBindAddress",
    "healthzPort",
    "httpCheckFrequency",
    "imageServiceEndpoint",
    "kubeAPIBurst",
    "kubeAPIQPS",
    "kubeReserved",
    "localStorageCapacityIsolation",
    "logging",
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
    "providerID",
    "readOnlyPort",
    "registerNode",
    "registerWithTaints",
    "reservedSystemCPUs",
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
    "syncFrequency",
    "systemReserved",
    "tlsCertFile",
    "tlsCipherSuites",
    "tlsMinVersion",
    "tlsPrivateKeyFile",
];

/// The fields and flags that are set and have no effect.
pub(super) fn ignored(given: &ParsedFlags, loaded: &LoadedConfig) -> Vec<String> {
    let fields =
        loaded.written().into_iter().filter(|field| !IMPLEMENTED.contains(&field.as_str()));
    fields.chain(flags(&given.program)).collect()
}

fn flags(program: &ProgramFlags) -> impl Iterator<Item = String> {
    let rows = [
        ("--lock-file", !program.lock_file.is_empty()),
        ("--runtime-cgroups", !program.runtime_cgroups.is_empty()),
    ];
    rows.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned())
}
