//! The table of all flags, from which parser and help are made.

mod machine;
mod pods;
mod server;

use super::{Flag, FlagKind, FlagStatus};

use FlagKind::{Duration, Modules, Number, Pairs, Switch, Text};
use FlagStatus::{Current, Deprecated, NoOp, OarsmanOnly};

/// A flag that is deprecated in favour of its field.
const fn deprecated(
    name: &'static str,
    kind: FlagKind,
    field: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, kind, field, status: Deprecated, help }
}

const fn of(
    status: FlagStatus,
    name: &'static str,
    kind: FlagKind,
    field: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, kind, field, status, help }
}

/// Every flag.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    let fields = server::FLAGS.iter().chain(&pods::FLAGS).chain(&machine::FLAGS);
    PROGRAM.iter().chain(fields)
}

/// The flag of that name.
pub(super) fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
}

/// Flags that are not deprecated in favour of a field.
static PROGRAM: [Flag; 57] = [
    of(Current, "config", Text, "", "The file of the configuration (KubeletConfiguration)."),
    of(
        Current,
        "config-dir",
        Text,
        "",
        "A directory of drop-ins (*.conf) that are merged into it in the order of their names.",
    ),
    of(Current, "root-dir", Text, "", "Below which everything of the kubelet lies."),
    of(Current, "hostname-override", Text, "", "The node's name, if it is not the machine's."),
    of(Current, "node-ip", Text, "", "The node's addresses, if they are not to be found out."),
    of(Current, "node-labels", Pairs, "", "Labels that the node registers with."),
    of(
        Current,
        "kubeconfig",
        Text,
        "",
        "How the API server is reached; without it the node has none.",
    ),
    of(Current, "bootstrap-kubeconfig", Text, "", "How the API server is reached the first time."),
    of(Current, "cert-dir", Text, "", "Where certificates lie."),
    of(Current, "cloud-provider", Text, "", "Empty, or external."),
    of(
        Current,
        "fail-cgroupv1",
        Switch,
        "failCgroupV1",
        "Whether a machine with cgroup v1 is refused.",
    ),
    of(
        Current,
        "seccomp-default",
        Switch,
        "seccompDefault",
        "Whether containers that do not say otherwise are confined by the runtime's seccomp profile.",
    ),
    of(Current, "provider-id", Text, "providerID", "By which a cloud knows the node."),
    of(Current, "runtime-cgroups", Text, "", "The cgroup of the runtime."),
    of(
        Current,
        "image-credential-provider-config",
        Text,
        "",
        "Where it is written which programs know credentials of registries.",
    ),
    of(Current, "image-credential-provider-bin-dir", Text, "", "Where those programs lie."),
    of(Current, "lock-file", Text, "", "A file that only one kubelet holds at a time."),
    of(
        Current,
        "exit-on-lock-contention",
        Switch,
        "",
        "Whether the kubelet ends when another one wants that file.",
    ),
    of(
        Current,
        "v",
        Number,
        "logging.verbosity",
        "How much is said: 4 and more for those who look for a fault.",
    ),
    of(Current, "vmodule", Modules, "logging.vmodule", "How much some modules say."),
    of(
        Current,
        "log-flush-frequency",
        Duration,
        "logging.flushFrequency",
        "How long lines may lie before they are written.",
    ),
    of(Current, "version", Switch, "", "Say which version this is, and end."),
    of(Current, "help", Switch, "", "Say this, and end."),
    of(
        OarsmanOnly,
        "container-log-links-dir",
        Text,
        "",
        "Where logs are linked by container; empty for nowhere.",
    ),
    of(
        OarsmanOnly,
        "log-file",
        Text,
        "",
        "Where the kubelet's own log goes, with rotation; - for stderr.",
    ),
    of(
        OarsmanOnly,
        "log-file-max-size",
        Text,
        "",
        "How large that file grows before the next is begun, such as 50Mi; 0 if others rotate it.",
    ),
    of(OarsmanOnly, "log-file-max-files", Number, "", "How many files that log has at most."),
    of(
        OarsmanOnly,
        "remember-pods",
        Switch,
        "",
        "Whether pods of the API server, and what they use, are kept on this machine, sealed, and come back while it is away.",
    ),
    of(
        OarsmanOnly,
        "pod-network",
        Text,
        "",
        "What connects pods of the embedded runtime: cni, bridge, or auto for CNI where it is configured.",
    ),
    of(
        OarsmanOnly,
        "cni-conf-dir",
        Text,
        "",
        "Where CNI networks of the embedded runtime are configured.",
    ),
    of(
        OarsmanOnly,
        "cni-bin-dir",
        Text,
        "",
        "Where CNI plugins of the embedded runtime lie; directories with commas between them.",
    ),
    of(OarsmanOnly, "pod-logs-dir", Text, "podLogsDir", "Where the logs of pods lie."),
    of(
        OarsmanOnly,
        "max-parallel-image-pulls",
        Number,
        "maxParallelImagePulls",
        "How many images are pulled at once.",
    ),
    of(
        NoOp,
        "minimum-container-ttl-duration",
        Duration,
        "",
        "How old a container that has ended must be before it is removed.",
    ),
    of(
        NoOp,
        "maximum-dead-containers-per-container",
        Number,
        "",
        "How many containers that have ended are kept of each one.",
    ),
    of(
        NoOp,
        "maximum-dead-containers",
        Number,
        "",
        "How many containers that have ended are kept in all.",
    ),
    of(NoOp, "experimental-mounter-path", Text, "", "A program that mounts."),
    of(
        NoOp,
        "experimental-allocatable-ignore-eviction",
        Switch,
        "",
        "Whether thresholds of eviction are left out of what pods may use.",
    ),
    of(NoOp, "housekeeping-interval", Duration, "", "How often cAdvisor looks at containers."),
    of(
        NoOp,
        "global-housekeeping-interval",
        Duration,
        "",
        "How often cAdvisor looks at everything.",
    ),
    of(NoOp, "application-metrics-count-limit", Number, "", "A limit of cAdvisor."),
    of(NoOp, "boot-id-file", Text, "", "A file of cAdvisor."),
    of(NoOp, "container-hints", Text, "", "A file of cAdvisor."),
    of(NoOp, "machine-id-file", Text, "", "A file of cAdvisor."),
    of(NoOp, "containerd", Text, "", "The socket of containerd, for cAdvisor."),
    of(NoOp, "containerd-namespace", Text, "", "The namespace of containerd, for cAdvisor."),
    of(NoOp, "enable-load-reader", Switch, "", "Whether cAdvisor reads the load."),
    of(NoOp, "event-storage-age-limit", Text, "", "A limit of cAdvisor."),
    of(NoOp, "event-storage-event-limit", Text, "", "A limit of cAdvisor."),
    of(NoOp, "log-cadvisor-usage", Switch, "", "Whether cAdvisor logs what it uses."),
    of(NoOp, "storage-driver-user", Text, "", "Of a database of cAdvisor."),
    of(NoOp, "storage-driver-password", Text, "", "Of a database of cAdvisor."),
    of(NoOp, "storage-driver-host", Text, "", "Of a database of cAdvisor."),
    of(NoOp, "storage-driver-db", Text, "", "Of a database of cAdvisor."),
    of(NoOp, "storage-driver-table", Text, "", "Of a database of cAdvisor."),
    of(NoOp, "storage-driver-secure", Switch, "", "Of a database of cAdvisor."),
    of(NoOp, "storage-driver-buffer-duration", Duration, "", "Of a database of cAdvisor."),
];
