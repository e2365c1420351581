//! Flags of fields that concern the server and the cluster.

use super::deprecated;
use crate::flags::Flag;
use crate::flags::FlagKind::{Duration, Gates, List, Number, Switch, Taints, Text};

pub(super) static FLAGS: [Flag; 32] = [
    deprecated(
        "enable-server",
        Switch,
        "enableServer",
        "Whether the kubelet's server listens at all.",
    ),
    deprecated("address", Text, "address", "The address that the server listens at."),
    deprecated("port", Number, "port", "The port that the server listens at."),
    deprecated(
        "read-only-port",
        Number,
        "readOnlyPort",
        "The port of the server that asks nobody who they are; 0 for none.",
    ),
    deprecated(
        "anonymous-auth",
        Switch,
        "authentication.anonymous.enabled",
        "Whether those of whom nothing is known are let in.",
    ),
    deprecated(
        "authentication-token-webhook",
        Switch,
        "authentication.webhook.enabled",
        "Whether the API server is asked about tokens.",
    ),
    deprecated(
        "authentication-token-webhook-cache-ttl",
        Duration,
        "authentication.webhook.cacheTTL",
        "How long its answers about tokens are kept.",
    ),
    deprecated(
        "client-ca-file",
        Text,
        "authentication.x509.clientCAFile",
        "Who has to have signed the certificates of those who ask.",
    ),
    deprecated(
        "authorization-mode",
        Text,
        "authorization.mode",
        "Who decides what those who ask may do: AlwaysAllow or Webhook.",
    ),
    deprecated(
        "authorization-webhook-cache-authorized-ttl",
        Duration,
        "authorization.webhook.cacheAuthorizedTTL",
        "How long a yes is kept.",
    ),
    deprecated(
        "authorization-webhook-cache-unauthorized-ttl",
        Duration,
        "authorization.webhook.cacheUnauthorizedTTL",
        "How long a no is kept.",
    ),
    deprecated("tls-cert-file", Text, "tlsCertFile", "The server's certificate."),
    deprecated(
        "tls-private-key-file",
        Text,
        "tlsPrivateKeyFile",
        "The key of the server's certificate.",
    ),
    deprecated(
        "tls-cipher-suites",
        List,
        "tlsCipherSuites",
        "What the server may encrypt with; none for the usual ones.",
    ),
    deprecated(
        "tls-min-version",
        Text,
        "tlsMinVersion",
        "The oldest TLS that the server speaks; none for 1.2.",
    ),
    deprecated(
        "rotate-certificates",
        Switch,
        "rotateCertificates",
        "Whether the client's certificate is renewed.",
    ),
    deprecated(
        "rotate-server-certificates",
        Switch,
        "serverTLSBootstrap",
        "Whether the server's certificate is asked of the API server.",
    ),
    deprecated(
        "enable-debugging-handlers",
        Switch,
        "enableDebuggingHandlers",
        "Whether the server serves logs, exec and the like.",
    ),
    deprecated(
        "contention-profiling",
        Switch,
        "enableContentionProfiling",
        "Whether the server can tell what waits for locks.",
    ),
    deprecated("healthz-port", Number, "healthzPort", "The port of the health check; 0 for none."),
    deprecated(
        "healthz-bind-address",
        Text,
        "healthzBindAddress",
        "The address of the health check.",
    ),
    deprecated(
        "streaming-connection-idle-timeout",
        Duration,
        "streamingConnectionIdleTimeout",
        "How long exec, attach and port-forward may be silent.",
    ),
    deprecated(
        "node-status-update-frequency",
        Duration,
        "nodeStatusUpdateFrequency",
        "How often the node's status is computed.",
    ),
    deprecated(
        "node-status-max-images",
        Number,
        "nodeStatusMaxImages",
        "How many images the node's status names; -1 for all.",
    ),
    deprecated(
        "kube-api-content-type",
        Text,
        "contentType",
        "In what form the API server is spoken to.",
    ),
    deprecated(
        "kube-api-qps",
        Number,
        "kubeAPIQPS",
        "How many requests are sent to the API server in a second.",
    ),
    deprecated("kube-api-burst", Number, "kubeAPIBurst", "How many of them may be sent at once."),
    deprecated(
        "event-qps",
        Number,
        "eventRecordQPS",
        "How many events may be sent in a second; 0 for any number.",
    ),
    deprecated("event-burst", Number, "eventBurst", "How many events may be sent at once."),
    deprecated("register-node", Switch, "registerNode", "Whether the node registers itself."),
    deprecated(
        "register-with-taints",
        Taints,
        "registerWithTaints",
        "Taints that the node registers with.",
    ),
    deprecated(
        "feature-gates",
        Gates,
        "featureGates",
        "Features that are switched on or off, by name.",
    ),
];
