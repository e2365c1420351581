//! Fields that have fields of their own.

use std::collections::BTreeMap;

use oarsman_core::quantity::Quantity;
use serde::{Deserialize, Serialize};

use crate::enums::{KubeletAuthorizationMode, LogFormat, SwapBehaviorSetting, TaintEffect};
use crate::go_duration::{self, GoDuration};

/// How the server finds out who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Authentication {
    /// By a certificate.
    pub x509: CertificateAuthentication,
    /// By a token that the API server knows.
    pub webhook: TokenAuthentication,
    /// Not at all.
    pub anonymous: AnonymousAuthentication,
}

/// Who asks is found out by their certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateAuthentication {
    /// Who has to have signed it; empty to look at no certificate.
    #[serde(rename = "clientCAFile")]
    pub client_ca_file: String,
}

/// Who asks is found out by asking the API server about their token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenAuthentication {
    /// Whether it is asked.
    pub enabled: bool,
    /// How long its answers are kept.
    #[serde(rename = "cacheTTL")]
    pub cache_ttl: GoDuration,
}

impl Default for TokenAuthentication {
    fn default() -> Self {
        Self { enabled: true, cache_ttl: GoDuration::from_secs(120) }
    }
}

/// Who asks need not be known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnonymousAuthentication {
    /// Whether those of whom nothing is known are let in as `system:anonymous`.
    pub enabled: bool,
}

/// How the server finds out what those who ask may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Authorization {
    /// Who decides.
    pub mode: KubeletAuthorizationMode,
    /// How the API server is asked.
    pub webhook: WebhookAuthorization,
}

/// How the API server is asked what somebody may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebhookAuthorization {
    /// How long a yes is kept.
    #[serde(rename = "cacheAuthorizedTTL")]
    pub cache_authorized_ttl: GoDuration,
    /// How long a no is kept.
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
    /// None to swap not at all.
    pub swap_behavior: Option<SwapBehaviorSetting>,
}

/// How long a container that crashes waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CrashLoopBackOff {
    /// The longest it ever waits.
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
    /// How many users each has.
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
    /// Who takes them; none for `localhost:4317`.
    pub endpoint: Option<String>,
    /// How many of a million are sent; none for those that a caller asked for.
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

/// What is kept back of one NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReservedMemory {
    /// Its number.
    pub numa_node: i32,
    /// How much, by kind of memory.
    pub limits: BTreeMap<String, Quantity>,
}

/// Keeps pods from the node that do not tolerate it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// Its value, which may be empty.
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
    /// Since when it is there; a configuration may not say that.
    pub time_added: Option<String>,
}

/// How the kubelet logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Logging {
    /// What a line looks like.
    pub format: LogFormat,
    /// How long lines may lie before they are written.
    #[serde(deserialize_with = "go_duration::or_nanoseconds")]
    pub flush_frequency: GoDuration,
    /// How much is said.
    pub verbosity: u32,
    /// How much is said by some files.
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

/// How much some files say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VModule {
    /// Which files.
    pub file_pattern: String,
    /// How much they say.
    pub verbosity: u32,
}

/// Options of the log formats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogOptions {
    /// Of the one for people.
    pub text: LogRouting,
    /// Of the one for programs.
    pub json: LogRouting,
}

/// Where lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogRouting {
    /// Whether errors go to stderr and the rest to stdout.
    pub split_stream: bool,
    /// How much of the rest may lie before it is written.
    pub info_buffer_size: Quantity,
}
