//! A network of a test's own: its configuration, and what is left of its pods.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata, PortMapping, RunPodSandboxRequest,
};
use oarsman_runtime::{CniSettings, EmbeddedRuntime, PodNetworkChoice, PodNetworkMode};
use serde_json::{Value, json};

use super::run;
use crate::harness::{Node, cgroup};

/// How the names of the plugins' bridges begin.
pub(super) const BRIDGES: &str = "cnitest";

/// A network of a test's own.
pub(super) struct PluginNetwork {
    place: PathBuf,
    plugins: PathBuf,
    number: u8,
}

impl PluginNetwork {
    /// Not configured yet. The number is part of its addresses and of the name of its bridge.
    pub(super) fn new(node: &Node, name: &str, number: u8) -> Result<Self> {
        let place = node.path().join(format!("{name}-cni"));
        for directory in ["net.d", "bin"] {
            fs::create_dir_all(place.join(directory))?;
        }
        Ok(Self { place, plugins: node.plugins().to_owned(), number })
    }

    pub(super) fn choice(&self, mode: PodNetworkMode) -> PodNetworkChoice {
        let cni = CniSettings {
            configuration: self.place.join("net.d"),
            plugins: vec![self.place.join("bin"), self.plugins.clone()],
            ..CniSettings::default()
        };
        PodNetworkChoice { mode, cni, collects_garbage: true }
    }

    pub(super) fn bridge(&self) -> String {
        format!("{BRIDGES}{}", self.number)
    }

    pub(super) fn name(&self) -> String {
        format!("net-{}", self.number)
    }

    /// The host's address.
    pub(super) fn gateway(&self) -> String {
        format!("10.77.{}.1", self.number)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    /// Writes the configuration: bridge, addresses, host ports and limits.
    pub(super) fn configure(&self) -> Result<()> {
        self.configure_with(&[])
    }

    /// The same with more plugins behind.
    pub(super) fn configure_with(&self, more: &[&str]) -> Result<()> {
        let ipam = json!({
            "type": "host-local",
            "ranges": [[{ "subnet": format!("10.77.{}.0/24", self.number) }], [{ "subnet": format!("fd77:{}::/64", self.number) }]],
            "dataDir": self.place.join("leases"),
            "routes": [{ "dst": "0.0.0.0/0" }],
        });
        let mut plugins = vec![
            json!({
                "type": "bridge", "bridge": self.bridge(), "isGateway": true, "hairpinMode": true, "ipam": ipam,
            }),
            json!({
                "type": "portmap", "capabilities": { "portMappings": true }, "backend": "nftables", "snat": false,
            }),
            json!({ "type": "bandwidth", "capabilities": { "bandwidth": true } }),
        ];
        plugins.extend(more.iter().map(|name| json!({ "type": name })));
        self.write(&json!({ "cniVersion": "1.1.0", "name": self.name(), "plugins": plugins }))
    }

    pub(super) fn write(&self, network: &Value) -> Result<()> {
        Ok(fs::write(self.configuration(), network.to_string())?)
    }

    pub(super) fn remove_configuration(&self) -> Result<()> {
        Ok(fs::remove_file(self.configuration())?)
    }

    fn configuration(&self) -> PathBuf {
        self.place.join("net.d/10-test.conflist")
    }

    /// Installs a plugin that is a script; `$HERE` is a directory of the test's own, and `$input` what it got.
    pub(super) fn install(&self, name: &str, script: &str) -> Result<()> {
        let path = self.place.join("bin").join(name);
        let here = self.place.display();
        fs::write(&path, format!("#!/bin/sh\nHERE={here}\ninput=$(cat)\n{script}"))?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
    }

    /// The addresses that are leased.
    pub(super) fn leases(&self) -> Result<Vec<String>> {
        let directory = self.place.join("leases").join(self.name());
        let mut leased = Vec::new();
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.contains(['.', ':']) && !name.starts_with("last_reserved") {
                leased.push(name);
            }
        }
        leased.sort();
        Ok(leased)
    }

    /// Whatever a pod has of this network on the node: leases, ports of the bridge, and rules with its addresses.
    pub(super) fn traces(&self) -> Result<Vec<String>> {
        let mut found = self.leases()?;
        let master = format!("master {} ", self.bridge());
        let links = run(&["ip", "-o", "link", "show"])?;
        found.extend(links.lines().filter(|line| line.contains(&master)).map(str::to_owned));
        let subnet = format!("10.77.{}.", self.number);
        let rules = run(&["nft", "list", "ruleset"])?;
        let of_pods = rules.lines().filter(|line| line.contains(&subnet));
        found.extend(of_pods.map(|line| format!("rule {}", line.trim())));
        let limits = run(&["ip", "-o", "link", "show", "type", "ifb"])?;
        found.extend(limits.lines().filter(|line| line.contains("bwp")).map(str::to_owned));
        Ok(found)
    }
}

/// A pod's configuration.
pub(super) fn pod_config(name: &str) -> PodSandboxConfig {
    let metadata = PodSandboxMetadata {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        namespace: "default".to_owned(),
        attempt: 0,
    };
    let linux = LinuxPodSandboxConfig {
        cgroup_parent: cgroup().to_string_lossy().into_owned(),
        ..LinuxPodSandboxConfig::default()
    };
    PodSandboxConfig { metadata: Some(metadata), linux: Some(linux), ..Default::default() }
}

pub(super) fn host_port(host_port: i32, container_port: i32) -> PortMapping {
    PortMapping { host_port, container_port, ..PortMapping::default() }
}

pub(super) async fn run_pod(
    runtime: &EmbeddedRuntime,
    config: PodSandboxConfig,
) -> oarsman_cri::Result<String> {
    let request = RunPodSandboxRequest { config: Some(config), ..Default::default() };
    runtime.run_pod_sandbox(request).await
}

/// The addresses of a pod, as its status has them.
pub(super) async fn addresses(runtime: &EmbeddedRuntime, pod: &str) -> Result<Vec<String>> {
    let network = runtime.pod_sandbox_status(pod).await?.network.context("a network")?;
    ensure!(!network.ip.is_empty(), "{network:?}");
    let more = network.additional_ips.into_iter().map(|more| more.ip);
    Ok([network.ip].into_iter().chain(more).collect())
}

/// Why there is no network for pods, if there is none.
pub(super) async fn trouble(runtime: &EmbeddedRuntime) -> Result<Option<String>> {
    let conditions = runtime.status().await?.status.context("a status")?.conditions;
    let ready = conditions.into_iter().find(|it| it.r#type == "NetworkReady");
    let ready = ready.context("a condition of the network")?;
    ensure!(ready.status == ready.reason.is_empty(), "{ready:?}");
    Ok((!ready.status).then_some(format!("{}: {}", ready.reason, ready.message)))
}
