//! The closed list of the program's named tasks. `testing/sim/tests/panics.rs` says for each how its panic is tested, so that a task without
//! such a test does not compile.

use std::fmt;

macro_rules! task_names {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A task of the program, as logs and counters name it. docs/adr/0023 has their tree.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TaskName {
            $($(#[$doc])* $name,)*
        }

        impl TaskName {
            /// All tasks.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in logs and counters.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

task_names! {
    /// Reads pods from files.
    FileSource = "file source",
    /// Reads pods from a URL.
    UrlSource = "url source",
    /// Watches the node's pods at the API server.
    ApiSource = "api source",
    /// Sends events of pods.
    EventRecorder = "event recorder",
    /// Finds the node's addresses again and again.
    NodeAddresses = "node addresses",
    /// Writes encrypted copies of the cluster's pods.
    PodCheckpoints = "pod checkpoints",
    /// The sync loop.
    Supervisor = "supervisor",
    /// Owns one pod.
    PodWorker = "pod worker",
    /// A probe, or another future that a pod worker polls beside its work.
    BackgroundTask = "background task",
    /// Lists what runtime and disk have.
    Relist = "relist",
    /// Serves CRI for the embedded runtime.
    CriServer = "cri server",
    /// Reads the exits of one sandbox's containers from its shim.
    SandboxMonitor = "sandbox monitor",
    /// Patches statuses and deletes pods at the API server.
    StatusManager = "status manager",
    /// Creates and deletes mirror pods.
    MirrorManager = "mirror manager",
    /// Listens to the runtime's events.
    RuntimeEvents = "runtime events",
    /// Checks and rotates container logs.
    ContainerLogManager = "container log manager",
    /// Asks the runtime whether it is ready.
    RuntimeHealth = "runtime health",
    /// Lists the images for the node's status.
    ImageList = "image list",
    /// Removes unused images.
    ImageGc = "image gc",
    /// Registers the node and updates its status.
    NodeStatus = "node status",
    /// Renews the node's lease.
    NodeLease = "node lease",
    /// Sends events of the node.
    NodeEvents = "node events",
    /// Keeps one ConfigMap or Secret that pods refer to.
    ObjectRefresh = "object refresh",
    /// Renews one service account token.
    TokenRefresh = "token refresh",
    /// Watches the services of pods' namespaces.
    ServiceWatch = "service watch",
    /// Watches trust bundles.
    TrustBundleWatch = "trust bundle watch",
    /// Watches the certificate requests of this node's pods.
    PodCertificateWatch = "pod certificate watch",
    /// Renews one certificate of one pod.
    PodCertificateRefresh = "pod certificate refresh",
    /// Passes changes of log files to the requests that follow them.
    LogWatch = "log watch",
    /// Binds the servers of the kubelet's ports.
    KubeletServer = "kubelet server",
    /// Accepts connections on port 10250.
    HttpsServer = "https server",
    /// Accepts connections on the read-only port.
    ReadOnlyServer = "read-only server",
    /// Accepts connections on the port of health checks.
    HealthServer = "health server",
    /// Renews the serving certificate.
    ServingCertificate = "serving certificate",
    /// Renews the client certificate.
    ClientCertificate = "client certificate",
    /// Sends spans to the collector.
    SpanExporter = "span exporter",
    /// Tells systemd that the agent answers.
    SystemdWatchdog = "systemd watchdog",
    /// Answers commands on the local socket.
    LocalApi = "local api",
}

impl fmt::Display for TaskName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
