//! The one table of families that have no second source here, and why.

/// Whether a family is there at the end of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is there.
    Shown,
    /// It has no series, and is not there.
    Absent,
    /// That depends on the machine.
    ByMachine,
}

/// A family of which only presence and type are checked.
pub(super) struct PresenceRow {
    pub(super) family: &'static str,
    pub(super) presence: Presence,
    /// Why nothing else is.
    pub(super) reason: &'static str,
}

const fn absent(family: &'static str, reason: &'static str) -> PresenceRow {
    PresenceRow { family, presence: Presence::Absent, reason }
}

const fn shown(family: &'static str, reason: &'static str) -> PresenceRow {
    PresenceRow { family, presence: Presence::Shown, reason }
}

const fn by_machine(family: &'static str, reason: &'static str) -> PresenceRow {
    PresenceRow { family, presence: Presence::ByMachine, reason }
}

const NOTHING_GOES_WRONG: &str = "nothing of the kind fails here; unit tests count it";
const OF_DEVICES: &str = "whether a block device is behind the rig's directories, and whether pages reach it, is the machine's matter; unit tests \
                          compare the kernel's files";

pub(super) const PRESENCE_ONLY: &[PresenceRow] = &[
    absent("kubelet_restarted_pods_total", "no pod comes back under its UID"),
    absent("kubelet_preemptions", "no critical pod lacks room"),
    absent("kubelet_run_podsandbox_errors_total", NOTHING_GOES_WRONG),
    by_machine("kubelet_runtime_operations_errors_total", "which calls fail is the runtime's"),
    absent("kubelet_image_pull_duration_seconds", "images are imported by the rig"),
    absent("kubelet_image_garbage_collected_total", "the disk is not full"),
    absent(
        "kubelet_podcertificate_states",
        "its gate is off; tests of the cluster's client have it",
    ),
    shown("kubelet_certificate_manager_server_ttl_seconds", "the certificate is the agent's own"),
    shown("kubernetes_feature_enabled", "the gates are a table of the program's"),
    absent("oarsman_task_panics_total", "no task panics"),
    absent("oarsman_spans_dropped_total", "no traces are configured"),
    by_machine("container_fs_reads_bytes_total", OF_DEVICES),
    by_machine("container_fs_reads_total", OF_DEVICES),
    by_machine("container_fs_writes_bytes_total", OF_DEVICES),
    by_machine("container_fs_writes_total", OF_DEVICES),
    by_machine("container_spec_memory_swap_limit_bytes", "only machines with swap have it"),
];
