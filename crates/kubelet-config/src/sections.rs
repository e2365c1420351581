//! Structs of the configuration's nested fields.

use std::collections::BTreeMap;

use oarsman_core::quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::enums::{KubeletAuthorizationMode, LogFormat, SwapBehaviorSetting, TaintEffect};
use crate::go_duration::{self, GoDuration};

/// How the server authenticates clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Authentication {
    /// By client certificate.
    pub x509: CertificateAuthentication,
    /// By a token that the API server reviews.
    pub webhook: TokenAuthentication,
    /// As anonymous.
    pub anonymous: AnonymousAuthentication,
}

/// Authentication by client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateAuthentication {
    /// The file of authorities; empty to accept no client certificates.
    #[serde(rename = "clientCAFile")]
    pub client_ca_file: String,
}

/// Authentication by bearer token, which the API server reviews.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenAuthentication {
    /// Whether tokens are accepted.
    pub enabled: bool,
    /// How long reviews are cached.
    #[serde(rename = "cacheTTL")]
    pub cache_ttl: GoDuration,
}

impl Default for TokenAuthentication {
    fn default() -> Self {
        Self { enabled: true, cache_ttl: GoDuration::from_secs(120) }
    }
}

/// Authentication of requests without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnonymousAuthentication {
    /// Whether they are accepted as `system:anonymous`.
    pub enabled: bool,
}

/// How the server authorizes requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Authorization {
    /// Whether all are allowed, or the API server decides.
    pub mode: KubeletAuthorizationMode,
    /// The settings of decisions by the API server.
    pub webhook: WebhookAuthorization,
}

/// The settings of decisions by the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebhookAuthorization {
    /// How long a positive decision is cached.
    #[serde(rename = "cacheAuthorizedTTL")]
    pub cache_authorized_ttl: GoDuration,
    /// How long a negative decision is cached.
    #[serde(rename = "cacheUnauthorizedTTL")]
    pub cache_unauthorized_ttl: GoDuration,
}

impl Default for WebhookAuthorization {
    fn default() -> Self {
        Self {
            cache_authorized_ttl: GoDuration::from_secs(300),
            cache_unauthorized_ttl: GoDuration::from_secs(30),
        }
    }
}

/// What containers may do with swap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemorySwap {
    /// None for no swap.
    pub swap_behavior: Option<SwapBehaviorSetting>,
}

/// The back-off of containers that crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CrashLoopBackOff {
    /// The longest back-off.
    pub max_container_restart_period: GoDuration,
}

impl Default for CrashLoopBackOff {
    fn default() -> Self {
        Self { max_container_restart_period: GoDuration::from_secs(300) }
    }
}

/// User namespaces of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserNamespaces {
    /// How many user ids each pod has.
    pub ids_per_pod: i64,
}

impl Default for UserNamespaces {
    fn default() -> Self {
        Self { ids_per_pod: 65536 }
    }
}

/// Where traces are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tracing {
    /// The collector; none for `localhost:4317`.
    pub endpoint: Option<String>,
    /// How many of a million are sampled; none for those that a caller sampled.
    pub sampling_rate_per_million: Option<i32>,
}

/// How long pods of a priority have to end when the machine shuts down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityPeriod {
    /// From this priority on.
    pub priority: i32,
    /// In seconds.
    pub shutdown_grace_period_seconds: i64,
}

/// Memory that is reserved on one NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReservedMemory {
    /// The number of the NUMA node.
    pub numa_node: i32,
    /// The reserved amounts, by kind of memory.
    pub limits: BTreeMap<String, Quantity>,
}

/// A taint that the node registers with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// Its value, which may be empty.
    pub value: String,
    /// The effect on pods that do not tolerate it.
    pub effect: TaintEffect,
    /// When it was added; a configuration may not set it.
    pub time_added: Option<String>,
}

/// How the kubelet logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Logging {
    /// The format of lines.
    pub format: LogFormat,
    /// How long lines may be buffered.
    #[serde(deserialize_with = "go_duration::or_nanoseconds")]
    pub flush_frequency: GoDuration,
    /// The verbosity.
    pub verbosity: u32,
    /// The verbosities of single files.
    pub vmodule: Vec<VModule>,
    /// Options of the formats.
    pub options: LogOptions,
}

impl Default for Logging {
    fn default() -> Self {
        Self {
            format: LogFormat::default(),
            flush_frequency: GoDuration::from_secs(5),
            verbosity: 0,
            vmodule: Vec::new(),
            options: LogOptions::default(),
        }
    }
}

/// The verbosity of some files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VModule {
    /// The pattern of file names.
    pub file_pattern: String,
    /// Their verbosity.
    pub verbosity: u32,
}

/// Options of the log formats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogOptions {
    /// Of the text format.
    pub text: LogRouting,
    /// Of the JSON format.
    pub json: LogRouting,
}

/// Where lines are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogRouting {
    /// Whether errors go to stderr and other lines to stdout.
    pub split_stream: bool,
    /// How many bytes of other lines may be buffered.
    pub info_buffer_size: Quantity,
}
