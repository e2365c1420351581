//! The numbers of `/metrics` and `/metrics/probes`: those of the agent, of its pods, of its process and of the program.

mod disks;
mod startup;
#[cfg(test)]
mod tests;

use std::env;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use oarsman_agent::{ActivePodsReader, AgentMetrics, write_pod_counts};
use oarsman_clock::Clock;
use oarsman_cluster::credentials::CertificateRecord;
use oarsman_core::active_pods::PodCounts;
use oarsman_core::exposition::{Exposition, MetricKind};
use oarsman_core::features::FeatureGates;
use oarsman_core::node::go_architecture;
use oarsman_core::resources::CgroupVersion;
use oarsman_host::own_process::{ProcessReader, ProcessUsage};
use oarsman_kubelet_config::feature_stage;
use oarsman_server::MetricsSource;
use oarsman_spans::Tracer;
use oarsman_sync::Guarded;

use super::kubernetes_version;
use crate::assembly::Agent;
use crate::settings::AgentSettings;

use disks::DiskMetrics;
use startup::write_node_startup;

/// What the numbers are read from when they are asked for.
pub(super) struct KubeletMetrics {
    agent: Arc<AgentMetrics>,
    pods: ActivePodsReader,
    node: String,
    features: FeatureGates,
    cgroup_version: CgroupVersion,
    /// None without a cluster.
    client_certificate: Option<CertificateRecord>,
    /// None until the servers have a certificate.
    serving_certificate: Guarded<Option<CertificateRecord>>,
    process: Option<ProcessReader>,
    disks: DiskMetrics,
    /// Of the files that configure credential provider plugins; none if there are none.
    providers_hash: Option<String>,
    /// None unless traces are configured.
    tracer: Option<Arc<Tracer>>,
    clock: Arc<dyn Clock>,
}

impl KubeletMetrics {
    pub(super) fn new(agent: &Agent, settings: &AgentSettings, clock: &Arc<dyn Clock>) -> Self {
        Self {
            agent: agent.metrics(),
            pods: agent.pods(),
            node: settings.node_name.clone(),
            features: settings.features,
            cgroup_version: agent.cgroup_version(),
            client_certificate: agent.client_certificate(),
            serving_certificate: Guarded::default(),
            process: ProcessReader::new().ok(),
            disks: DiskMetrics { pull_records: agent.pull_records(), claims: agent.stats() },
            providers_hash: settings.providers.hash.clone(),
            tracer: agent.tracer(),
            clock: Arc::clone(clock),
        }
    }

    /// The servers have this certificate.
    pub(super) fn set_serving_certificate(&self, record: CertificateRecord) {
        *self.serving_certificate.lock() = Some(record);
    }

    fn write_node(&self, out: &mut Exposition) {
        let help = "The name of the node; the value is always 1.";
        out.family("kubelet_node_name", MetricKind::Gauge, help)
            .sample(&[("node", &self.node)], 1.0);
        let help = "The version of the cgroup hierarchies in which limits are set.";
        let version = match self.cgroup_version {
            CgroupVersion::V1 => 1.0,
            CgroupVersion::V2 => 2.0,
        };
        out.single("kubelet_cgroup_version", MetricKind::Gauge, help, version);
    }

    fn write_pods(&self, out: &mut Exposition) {
        let counts = PodCounts::of(&self.pods.all());
        write_pod_counts(&counts, self.client_certificate.is_some(), out);
    }

    fn write_certificates(&self, out: &mut Exposition) {
        let now = self.clock.wall();
        if let Some(record) = &self.client_certificate {
            let name = "kubelet_certificate_manager_client_ttl_seconds";
            write_time_to_live(out, name, record, now);
            let name = "kubelet_certificate_manager_client_expiration_renew_errors";
            write_renew_errors(out, name, record);
        }
        let serving = self.serving_certificate.lock().clone();
        if let Some(record) = &serving {
            let name = "kubelet_certificate_manager_server_ttl_seconds";
            write_time_to_live(out, name, record, now);
            write_renew_errors(out, "kubelet_server_expiration_renew_errors", record);
            let name = "kubelet_certificate_manager_server_rotation_seconds";
            let help = "How old serving certificates were when they were replaced, in seconds.";
            out.family(name, MetricKind::Histogram, help).histogram(&[], &record.lifetimes());
        }
    }

    fn write_program(&self, out: &mut Exposition) {
        let version = kubernetes_version();
        let mut parts = version.trim_start_matches('v').split('.');
        let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let platform = format!("{}/{}", env::consts::OS, go_architecture(env::consts::ARCH));
        let labels = [
            ("major", major),
            ("minor", minor),
            ("git_version", version),
            ("platform", platform.as_str()),
        ];
        let help = "The version that this kubelet behaves like; the value is always 1.";
        out.family("kubernetes_build_info", MetricKind::Gauge, help).sample(&labels, 1.0);
        let help = "Whether a feature gate that has an effect here is on.";
        let mut family = out.family("kubernetes_feature_enabled", MetricKind::Gauge, help);
        for (name, is_on) in self.features.named() {
            let labels = [("name", name), ("stage", feature_stage(name))];
            family.sample(&labels, if is_on { 1.0 } else { 0.0 });
        }
    }

    fn write_spans(&self, out: &mut Exposition) {
        if let Some(tracer) = &self.tracer {
            let help = "Spans that the collector did not take.";
            let dropped = tracer.dropped() as f64;
            out.single("oarsman_spans_dropped_total", MetricKind::Counter, help, dropped);
        }
    }

    fn write_credentials(&self, out: &mut Exposition) {
        if let Some(hash) = &self.providers_hash {
            let help = "The configuration of credential provider plugins; the value is always 1.";
            out.family("kubelet_credential_provider_config_info", MetricKind::Gauge, help)
                .sample(&[("hash", hash)], 1.0);
        }
        let help = "Certificates that pods have in volumes.";
        let mut family = out.family("kubelet_podcertificate_states", MetricKind::Gauge, help);
        for ((signer, state), count) in self.agent.pod_certificates.counts(self.clock.wall()) {
            family.sample(&[("signer_name", &signer), ("state", state)], count as f64);
        }
    }

    /// Without /proc nothing is known of the process.
    fn write_process(&self, out: &mut Exposition) {
        let usage = self.process.and_then(|process| process.read().ok());
        let durations = self.agent.node_startup.lock().durations();
        write_node_startup(&durations, usage.map(|usage| usage.after_boot), out);
        if let Some(usage) = usage {
            write_usage(&usage, out);
        }
    }
}

#[async_trait]
impl MetricsSource for KubeletMetrics {
    async fn write_kubelet_metrics(&self, out: &mut Exposition) {
        self.write_node(out);
        self.write_pods(out);
        self.agent.write(out);
        self.disks.write(out).await;
        self.write_certificates(out);
        self.write_credentials(out);
        self.write_program(out);
        self.write_process(out);
        self.write_spans(out);
    }

    fn write_probe_metrics(&self, out: &mut Exposition) {
        self.agent.probes.write(out);
    }
}

/// The seconds until a certificate expires, negative afterwards; nothing while there is none.
fn write_time_to_live(
    out: &mut Exposition,
    name: &str,
    record: &CertificateRecord,
    now: Timestamp,
) {
    if let Some(not_after) = record.not_after() {
        let help = "Seconds until the certificate expires, negative once it has.";
        let left = not_after.duration_since(now).as_secs_f64();
        out.single(name, MetricKind::Gauge, help, left);
    }
}

fn write_renew_errors(out: &mut Exposition, name: &str, record: &CertificateRecord) {
    let help = "How often a new certificate was asked for in vain.";
    out.single(name, MetricKind::Counter, help, record.renew_errors() as f64);
}

fn write_usage(usage: &ProcessUsage, out: &mut Exposition) {
    let cpu = usage.cpu.as_secs_f64();
    let help = "Processor time of the agent, in seconds.";
    out.single("process_cpu_seconds_total", MetricKind::Counter, help, cpu);
    let mut gauge = |name: &str, help: &str, value: f64| {
        out.single(name, MetricKind::Gauge, help, value);
    };
    let resident = usage.resident_bytes as f64;
    gauge("process_resident_memory_bytes", "Memory of the agent in RAM.", resident);
    let virtual_bytes = usage.virtual_bytes as f64;
    gauge("process_virtual_memory_bytes", "Address space of the agent.", virtual_bytes);
    gauge("process_open_fds", "Open files and sockets of the agent.", usage.open_files as f64);
    if let Some(max) = usage.max_open_files {
        gauge("process_max_fds", "How many files the agent may have open.", max as f64);
    }
    let help = "When the agent was started, in seconds since 1970.";
    gauge("process_start_time_seconds", help, usage.started);
}
