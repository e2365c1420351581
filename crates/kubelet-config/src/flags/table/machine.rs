//! Flags of fields that concern the machine and its reserved resources.

use super::deprecated;
use crate::flags::Flag;
use crate::flags::FlagKind::{
    Duration, List, Memory, Number, Pair, Pairs, Switch, Text, Thresholds,
};

pub(super) static FLAGS: [Flag; 38] = [
    deprecated(
        "kubelet-cgroups",
        Text,
        "kubeletCgroups",
        "The cgroup that the kubelet moves to; empty for none.",
    ),
    deprecated(
        "system-cgroups",
        Text,
        "systemCgroups",
        "The cgroup that everything else moves to; empty for none.",
    ),
    deprecated(
        "cgroups-per-qos",
        Switch,
        "cgroupsPerQOS",
        "Whether pods and their classes have cgroups of their own.",
    ),
    deprecated(
        "cgroup-driver",
        Text,
        "cgroupDriver",
        "Who makes cgroups, if the runtime does not tell.",
    ),
    deprecated("cgroup-root", Text, "cgroupRoot", "The cgroup below which those of pods are."),
    deprecated(
        "cpu-manager-policy",
        Text,
        "cpuManagerPolicy",
        "Whether containers get CPUs of their own.",
    ),
    deprecated(
        "cpu-manager-policy-options",
        Pair,
        "cpuManagerPolicyOptions",
        "Options of that policy.",
    ),
    deprecated(
        "cpu-manager-reconcile-period",
        Duration,
        "cpuManagerReconcilePeriod",
        "How often the CPUs of containers are set right.",
    ),
    deprecated("cpu-cfs-quota", Switch, "cpuCFSQuota", "Whether CPU limits are enforced."),
    deprecated(
        "cpu-cfs-quota-period",
        Duration,
        "cpuCFSQuotaPeriod",
        "The period over which they are enforced.",
    ),
    deprecated(
        "memory-manager-policy",
        Text,
        "memoryManagerPolicy",
        "Whether containers get memory of NUMA nodes.",
    ),
    deprecated(
        "reserved-memory",
        Memory,
        "reservedMemory",
        "How much memory of each NUMA node is kept back.",
    ),
    deprecated(
        "topology-manager-policy",
        Text,
        "topologyManagerPolicy",
        "How resources are kept close together.",
    ),
    deprecated(
        "topology-manager-policy-options",
        Pairs,
        "topologyManagerPolicyOptions",
        "Options of that policy.",
    ),
    deprecated(
        "topology-manager-scope",
        Text,
        "topologyManagerScope",
        "For whom they are kept together.",
    ),
    deprecated(
        "qos-reserved",
        Pairs,
        "qosReserved",
        "How much of what pods request is kept from lower classes.",
    ),
    deprecated("system-reserved", Pairs, "systemReserved", "What is kept for the system."),
    deprecated("kube-reserved", Pairs, "kubeReserved", "What is kept for Kubernetes itself."),
    deprecated("reserved-cpus", Text, "reservedSystemCPUs", "Which CPUs are kept for both."),
    deprecated("system-reserved-cgroup", Text, "systemReservedCgroup", "The cgroup of the system."),
    deprecated(
        "kube-reserved-cgroup",
        Text,
        "kubeReservedCgroup",
        "The cgroup of Kubernetes itself.",
    ),
    deprecated(
        "enforce-node-allocatable",
        List,
        "enforceNodeAllocatable",
        "Whose cgroups are limited to what they were promised.",
    ),
    deprecated(
        "eviction-hard",
        Thresholds,
        "evictionHard",
        "What makes pods be evicted at once, by signal.",
    ),
    deprecated(
        "eviction-soft",
        Thresholds,
        "evictionSoft",
        "What makes pods be evicted after a while, by signal.",
    ),
    deprecated(
        "eviction-soft-grace-period",
        Pairs,
        "evictionSoftGracePeriod",
        "How long that while is, by signal.",
    ),
    deprecated(
        "eviction-minimum-reclaim",
        Pairs,
        "evictionMinimumReclaim",
        "How much is freed beyond the threshold, by signal.",
    ),
    deprecated(
        "eviction-pressure-transition-period",
        Duration,
        "evictionPressureTransitionPeriod",
        "How long the node says that it is under pressure after it was.",
    ),
    deprecated(
        "eviction-max-pod-grace-period",
        Number,
        "evictionMaxPodGracePeriod",
        "How many seconds an evicted pod has to end at most.",
    ),
    deprecated(
        "kernel-memcg-notification",
        Switch,
        "kernelMemcgNotification",
        "Whether the kernel tells when memory runs short.",
    ),
    deprecated("fail-swap-on", Switch, "failSwapOn", "Whether a machine that swaps is refused."),
    deprecated(
        "oom-score-adj",
        Number,
        "oomScoreAdj",
        "How late the kubelet is killed when memory runs out.",
    ),
    deprecated(
        "max-open-files",
        Number,
        "maxOpenFiles",
        "How many files the kubelet may have open.",
    ),
    deprecated(
        "protect-kernel-defaults",
        Switch,
        "protectKernelDefaults",
        "Whether kernel settings that differ from ours stop the kubelet instead of being changed.",
    ),
    deprecated("logging-format", Text, "logging.format", "What log lines look like: text or json."),
    deprecated(
        "log-text-split-stream",
        Switch,
        "logging.options.text.splitStream",
        "Whether errors go to stderr and the rest to stdout, as text.",
    ),
    deprecated(
        "log-text-info-buffer-size",
        Text,
        "logging.options.text.infoBufferSize",
        "How much of the rest may lie before it is written.",
    ),
    deprecated(
        "log-json-split-stream",
        Switch,
        "logging.options.json.splitStream",
        "Whether errors go to stderr and the rest to stdout, as JSON.",
    ),
    deprecated(
        "log-json-info-buffer-size",
        Text,
        "logging.options.json.infoBufferSize",
        "How much of the rest may lie before it is written.",
    ),
];
