//! The causes that an explanation can name.

use serde::{Serialize, Serializer};

macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $name:ident => $slug:literal,)*) => {
        /// Why a pod is as it is: one of a closed list, each with a word that does not change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ExplanationCause {
            $($(#[doc = $doc])+ $name,)*
        }

        impl ExplanationCause {
            /// All of them, in the order in which documentation tells of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The word that tools match on.
            pub fn slug(self) -> &'static str {
                match self {
                    $(Self::$name => $slug,)*
                }
            }

            /// What it means, in a few words.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),+).trim_ascii(),)*
                }
            }
        }
    };
}

causes! {
    /// It runs, and nothing is wrong.
    Running => "running",
    /// It runs, after a container had to be started again.
    Restarted => "restarted",
    /// It is on its way, and nothing is wrong yet.
    Starting => "starting",
    /// It runs, and its manifest has been broken since.
    ManifestBroken => "manifest-broken",
    /// It runs, and another pod wants the same port of this machine.
    HostPortTaken => "host-port-taken",
    /// It runs, and a firewall drops what it sends to other hosts.
    FirewallDrops => "firewall-drops",
    /// A condition that others set keeps it from being ready.
    ReadinessGate => "readiness-gate",
    /// A readiness probe has not succeeded.
    NotReady => "not-ready",
    /// A startup probe has not succeeded.
    NotStarted => "not-started",
    /// The image's name cannot be one.
    ImageNameInvalid => "image-name-invalid",
    /// The registry has no such image.
    ImageNotFound => "image-not-found",
    /// The registry wants other credentials, or any.
    RegistryRefuses => "registry-refuses",
    /// The registry cannot be reached.
    RegistryUnreachable => "registry-unreachable",
    /// The registry's name cannot be resolved.
    RegistryUnknown => "registry-unknown",
    /// The registry answers that it is broken or busy.
    RegistryFails => "registry-fails",
    /// The image is not for this machine's processor.
    ImagePlatform => "image-platform",
    /// The image is not signed as the node demands.
    ImageUnsigned => "image-unsigned",
    /// The image is not here, and may not be pulled.
    ImageNeverPulled => "image-never-pulled",
    /// The image is not here, and the runtime can pull none.
    ImageNotImported => "image-not-imported",
    /// The runtime cannot say whether it has the image.
    ImageUnreadable => "image-unreadable",
    /// The image cannot be pulled for another reason.
    ImagePullFails => "image-pull-fails",
    /// The image is being pulled.
    Pulling => "pulling",
    /// Other images are pulled first.
    WaitingToPull => "waiting-to-pull",
    /// A container ends with an error, again and again.
    Crashes => "crashes",
    /// A container is ended by a signal, again and again.
    CrashesBySignal => "crashes-by-signal",
    /// A container uses more memory than it may.
    OutOfMemory => "out-of-memory",
    /// A container is killed, and not for its memory.
    Killed => "killed",
    /// A container did not end in its grace period and was killed by us.
    KilledAfterGrace => "killed-after-grace",
    /// A container ends by itself though it is to run for ever.
    EndsByItself => "ends-by-itself",
    /// The program is not in the image.
    CommandNotFound => "command-not-found",
    /// Neither image nor pod name a program.
    NoCommand => "no-command",
    /// The program may not be executed.
    CommandNotExecutable => "command-not-executable",
    /// The program is not one for this machine.
    CommandForeign => "command-foreign",
    /// The working directory cannot be.
    WorkingDirectory => "working-directory",
    /// A file is mounted where a directory is, or the other way round.
    MountKind => "mount-kind",
    /// The runtime cannot start a container for another reason.
    CannotStart => "cannot-start",
    /// The runtime cannot make a container for another reason.
    CannotCreate => "cannot-create",
    /// A container is being started, and that takes long.
    StartTakesLong => "start-takes-long",
    /// The container must not be root, and would be.
    WouldBeRoot => "would-be-root",
    /// The image's user is not in its /etc/passwd.
    UserUnknown => "user-unknown",
    /// A ConfigMap or Secret is not there.
    ObjectMissing => "object-missing",
    /// A ConfigMap or Secret lacks a key.
    KeyMissing => "key-missing",
    /// The seccomp profile is not there.
    SeccompMissing => "seccomp-missing",
    /// The machine has no AppArmor, or not that profile.
    AppArmor => "app-armor",
    /// A part of a volume cannot be mounted.
    SubPath => "sub-path",
    /// A container cannot be described to the runtime for another reason.
    ConfigRefused => "config-refused",
    /// A path of this machine is not there, or not what it should be.
    HostPath => "host-path",
    /// Volumes of that kind are not to be had here.
    VolumeKind => "volume-kind",
    /// A volume cannot be made for another reason.
    VolumeFails => "volume-fails",
    /// The runtime class is not known.
    RuntimeClass => "runtime-class",
    /// User namespaces are not to be had here.
    UserNamespace => "user-namespace",
    /// The host name is too long.
    HostName => "host-name",
    /// A kernel setting cannot be made.
    Sysctl => "sysctl",
    /// The memory limit is too low for anything to start.
    MemoryLimitTooLow => "memory-limit-too-low",
    /// The pod's network cannot be made.
    NetworkFails => "network-fails",
    /// The runtime has no network for pods.
    NetworkNotReady => "network-not-ready",
    /// The sandbox cannot be made for another reason.
    SandboxFails => "sandbox-fails",
    /// The sandbox is being made, and that takes long.
    SandboxTakesLong => "sandbox-takes-long",
    /// The runtime does not answer.
    RuntimeDown => "runtime-down",
    /// The agent cannot look at the pod.
    Unreadable => "unreadable",
    /// A hook after a container's start failed.
    PostStartFailed => "post-start-failed",
    /// A hook after a container's start is still running.
    PostStartRuns => "post-start-runs",
    /// An init container fails, again and again.
    InitFails => "init-fails",
    /// An init container still runs.
    InitRuns => "init-runs",
    /// A sidecar has not come up.
    SidecarNotStarted => "sidecar-not-started",
    /// A pod of the same name is still there.
    WaitsForNamesake => "waits-for-namesake",
    /// A container is stopped to be started as its manifest says now.
    Edited => "edited",
    /// A hook before the end is running.
    PreStopRuns => "pre-stop-runs",
    /// It was asked to end and has time to.
    Stopping => "stopping",
    /// It should have ended by now.
    StopOverdue => "stop-overdue",
    /// It has ended, and what it held is given back.
    GivingBack => "giving-back",
    /// It did what it was for.
    Succeeded => "succeeded",
    /// It ended with an error, and is not started again.
    Failed => "failed",
    /// An init container failed, and is not tried again.
    InitFailed => "init-failed",
    /// It ran longer than it may.
    DeadlineExceeded => "deadline-exceeded",
    /// The node turned it away or cut it short.
    Rejected => "rejected",
    /// No pod came of its manifest.
    NoPodOfManifest => "no-pod-of-manifest",
    /// It was here and is gone.
    Gone => "gone",
    /// The agent has no pod of that name.
    NoSuchPod => "no-such-pod",
}

impl Serialize for ExplanationCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}
