//! Flags of the program itself, which set no field of the configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;

use oarsman_core::quantity::{Format, Quantity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::field_path::FieldPath;
use crate::go_duration::GoDuration;
use crate::problem::Problem;

/// Labels of the kubernetes.io domain that a node may give itself, besides those below `kubelet.kubernetes.io` and `node.kubernetes.io`.
const OWN_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// The values of the program's flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ProgramFlags {
    /// The file of the configuration; empty for none.
    pub config: String,
    /// A directory of drop-ins; empty for none.
    pub config_dir: String,
    /// The kubeconfig; empty for a node without API server.
    pub kubeconfig: String,
    /// The kubeconfig for the first certificate request.
    pub bootstrap_kubeconfig: String,
    /// The node's name; empty for the host name.
    pub hostname_override: String,
    /// The node's addresses, separated by commas; empty to find them out.
    pub node_ip: String,
    /// The directory of certificates.
    pub cert_dir: String,
    /// Empty, or `external`.
    pub cloud_provider: String,
    /// The directory that holds all of the kubelet's files.
    pub root_dir: String,
    /// Labels that the node registers with.
    pub node_labels: BTreeMap<String, String>,
    /// A file that only one kubelet locks at a time; empty for none.
    pub lock_file: String,
    /// Whether the kubelet ends when another one opens that file.
    pub exit_on_lock_contention: bool,
    /// The cgroup of the runtime.
    pub runtime_cgroups: String,
    /// The configuration of credential provider plugins, a file or directory.
    pub image_credential_provider_config: String,
    /// The directory of the plugins' programs.
    pub image_credential_provider_bin_dir: String,
    /// The directory with a link to each container's log; empty for none.
    pub container_log_links_dir: String,
    /// The file of the kubelet's own log; empty or `-` for stderr.
    pub log_file: String,
    /// The size at which that file is rotated; 0 for never.
    pub log_file_max_size: Quantity,
    /// How many files that log has at most, the current one among them.
    pub log_file_max_files: i32,
    /// Whether pods of the API server are started again while it cannot be reached.
    pub remember_pods: bool,
    /// What connects pods of the embedded runtime: `auto`, `cni` or `bridge`.
    pub pod_network: String,
    /// The directory of CNI configurations.
    pub cni_conf_dir: String,
    /// The directories of CNI plugins, separated by commas.
    pub cni_bin_dir: String,
    /// How old a container that has ended must be before it is removed.
    pub minimum_container_ttl_duration: GoDuration,
    /// How many containers that have ended are kept of each one.
    pub maximum_dead_containers_per_container: i32,
    /// How many containers that have ended are kept in all; negative for any number.
    pub maximum_dead_containers: i32,
}

impl Default for ProgramFlags {
    fn default() -> Self {
        let none = String::new;
        Self {
            config: none(),
            config_dir: none(),
            kubeconfig: none(),
            bootstrap_kubeconfig: none(),
            hostname_override: none(),
            node_ip: none(),
            cert_dir: "/var/lib/kubelet/pki".to_owned(),
            cloud_provider: none(),
            root_dir: "/var/lib/kubelet".to_owned(),
            node_labels: BTreeMap::new(),
            lock_file: none(),
            exit_on_lock_contention: false,
            runtime_cgroups: none(),
            image_credential_provider_config: none(),
            image_credential_provider_bin_dir: none(),
            container_log_links_dir: "/var/log/containers".to_owned(),
            log_file: none(),
            log_file_max_size: Quantity::from_units(50 << 20, Format::BinarySi),
            log_file_max_files: 5,
            remember_pods: true,
            pod_network: "auto".to_owned(),
            cni_conf_dir: "/etc/cni/net.d".to_owned(),
            cni_bin_dir: "/opt/cni/bin".to_owned(),
            minimum_container_ttl_duration: GoDuration::ZERO,
            maximum_dead_containers_per_container: 1,
            maximum_dead_containers: -1,
        }
    }
}

impl ProgramFlags {
    /// From the values of flags, by their names; flags without effect are left out.
    pub(super) fn of(values: BTreeMap<&str, Value>) -> Result<Self, Vec<Problem>> {
        let values: Value =
            values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let flags: Self = serde_path_to_error::deserialize(&values).map_err(|error| {
            let flag = FieldPath::from_serde_path(error.path());
            vec![Problem::of_all(error.inner().to_string()).in_source(&format!("--{flag}"))]
        })?;
        let problems = flags.problems();
        if problems.is_empty() { Ok(flags) } else { Err(problems) }
    }

    /// The parsed addresses of `--node-ip`.
    pub fn node_ips(&self) -> Vec<IpAddr> {
        self.node_ip.split(',').filter_map(|text| text.trim().parse().ok()).collect()
    }

    /// The directories of `--cni-bin-dir`.
    pub fn cni_bin_dirs(&self) -> Vec<String> {
        self.cni_bin_dir.split(',').map(str::to_owned).collect()
    }

    fn problems(&self) -> Vec<Problem> {
        let said = |flag: &str, message: String| Problem::of_all(message).in_source(flag);
        let mut found = Vec::new();
        if !["", "external"].contains(&self.cloud_provider.as_str()) {
            let fix = "write external, or leave it out";
            found.push(said(
                "--cloud-provider",
                format!("{:?} is none any more; {fix}", self.cloud_provider),
            ));
        }
        if self.root_dir.is_empty() {
            found.push(said(
                "--root-dir",
                "is empty; name a directory such as /var/lib/kubelet".to_owned(),
            ));
        }
        let addresses: Vec<&str> =
            self.node_ip.split(',').filter(|text| !text.is_empty()).collect();
        if self.node_ips().len() != addresses.len() || addresses.len() > 2 {
            let fix = "write an address, or one of each family with a comma between them";
            found.push(said("--node-ip", format!("{:?} is no address; {fix}", self.node_ip)));
        }
        let config = self.image_credential_provider_config.is_empty();
        if config != self.image_credential_provider_bin_dir.is_empty() {
            let flag = if config {
                "--image-credential-provider-config"
            } else {
                "--image-credential-provider-bin-dir"
            };
            found.push(said(
                flag,
                "is missing: a configuration and a directory are given together".to_owned(),
            ));
        }
        if self.exit_on_lock_contention && self.lock_file.is_empty() {
            let fix = "needs a --lock-file, which others could want".to_owned();
            found.push(said("--exit-on-lock-contention", fix));
        }
        if self.log_file_max_size.is_negative() {
            let fix = "is negative; write a size such as 50Mi, or 0 for without end".to_owned();
            found.push(said("--log-file-max-size", fix));
        }
        if self.log_file_max_files < 1 {
            let fix = "is less than the one file that is written; write 1 or more".to_owned();
            found.push(said("--log-file-max-files", fix));
        }
        if !["auto", "cni", "bridge"].contains(&self.pod_network.as_str()) {
            let fix = "write auto, cni or bridge";
            found.push(said("--pod-network", format!("{:?} is none; {fix}", self.pod_network)));
        }
        for (flag, value) in
            [("--cni-conf-dir", &self.cni_conf_dir), ("--cni-bin-dir", &self.cni_bin_dir)]
        {
            if !value.split(',').all(|directory| directory.starts_with('/')) {
                let fix = "write it from the root on, such as /opt/cni/bin";
                found.push(said(flag, format!("{value:?} is no directory; {fix}")));
            }
        }
        let labels = self.node_labels.iter().filter_map(|(key, value)| label_problem(key, value));
        found.extend(labels.map(|message| said("--node-labels", message)));
        found
    }
}

fn label_problem(key: &str, value: &str) -> Option<String> {
    let (corner, name) = key.rsplit_once('/').unwrap_or(("", key));
    let is_plain = |text: &str| {
        let ends = text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric());
        ends && text.len() <= 63
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    if !is_plain(name) || (!value.is_empty() && !is_plain(value)) {
        return Some(format!(
            "{key}={value} is no label; letters, digits, dots, - and _ are, up to 63"
        ));
    }
    let within = |root: &str| corner == root || corner.ends_with(&format!(".{root}"));
    let is_reserved = within("kubernetes.io") || within("k8s.io");
    let is_ours = within("kubelet.kubernetes.io")
        || within("node.kubernetes.io")
        || OWN_LABELS.contains(&key);
    (is_reserved && !is_ours).then(|| {
        format!("{key} is for the cluster to set; use a name below kubelet.kubernetes.io or node.kubernetes.io, or your own")
    })
}
