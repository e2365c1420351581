//! `oarsman kubelet`: the node's agent, with the flags of the Go kubelet.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use oarsman_core::duration;
use oarsman_core::ledger::Mode;

use crate::logging::{Logging, Loudness};
use crate::settings::{Settings, Sources};
use crate::{assembly, machine, signals, threads};

/// The flags, by the names they have for the Go kubelet.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Below which everything of this agent lies.
    #[arg(long, default_value = "/var/lib/kubelet")]
    root_dir: PathBuf,
    /// The socket of the container runtime.
    #[arg(long, default_value = "unix:///run/containerd/containerd.sock")]
    container_runtime_endpoint: String,
    /// The socket of the image service, if it is not the runtime's.
    #[arg(long)]
    image_service_endpoint: Option<String>,
    /// How long an ordinary call to the runtime may take.
    #[arg(long, default_value = "2m", value_parser = duration::parse)]
    runtime_request_timeout: Duration,
    /// A directory or file of pod manifests.
    #[arg(long)]
    pod_manifest_path: Option<PathBuf>,
    /// How often manifests are looked at besides when they change.
    #[arg(long, default_value = "20s", value_parser = duration::parse)]
    file_check_frequency: Duration,
    /// A URL of a pod manifest or a list of pods.
    #[arg(long)]
    manifest_url: Option<String>,
    /// A header for that URL, as key:value; may be repeated.
    #[arg(long, value_parser = header)]
    manifest_url_header: Vec<(String, String)>,
    /// How often the URL is asked.
    #[arg(long, default_value = "20s", value_parser = duration::parse)]
    http_check_frequency: Duration,
    /// The directory of pods' logs.
    #[arg(long, default_value = "/var/log/pods")]
    pod_logs_dir: PathBuf,
    /// Where logs are linked by container; empty for nowhere.
    #[arg(long, default_value = "/var/log/containers")]
    container_log_links_dir: PathBuf,
    /// The cgroup below which those of pods are.
    #[arg(long, default_value = "/")]
    cgroup_root: String,
    /// Who makes cgroups, if the runtime does not tell.
    #[arg(long, default_value = "cgroupfs", value_parser = ["cgroupfs", "systemd"])]
    cgroup_driver: String,
    /// The node's name, if it is not the machine's.
    #[arg(long)]
    hostname_override: Option<String>,
    /// The node's addresses, comma separated, if they are not to be found out.
    #[arg(long, value_delimiter = ',')]
    node_ip: Vec<String>,
    /// How often everything on the node is counted, to catch what events did not tell.
    #[arg(long, default_value = "1m", value_parser = duration::parse)]
    sync_frequency: Duration,
    /// How many images are pulled at once.
    #[arg(long, default_value_t = 5)]
    max_parallel_image_pulls: usize,
    /// The addresses of the cluster's name servers, comma separated.
    #[arg(long, value_delimiter = ',')]
    cluster_dns: Vec<String>,
    /// The domain of the cluster.
    #[arg(long, default_value = "")]
    cluster_domain: String,
    /// The file with the resolver that pods get; empty for none.
    #[arg(long, default_value = "/etc/resolv.conf")]
    resolv_conf: PathBuf,
    /// How many processes a pod may have; -1 for as many as the node.
    #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
    pod_max_pids: i64,
    /// How much is said.
    #[arg(long, short, default_value_t = 2)]
    v: u8,
}

/// Runs the agent until it is told to end. Pods stay.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    Logging { loudness: Loudness::of(flags.v.into()), ..Logging::default() }.start()?;
    let settings = flags.settings()?;
    threads::work_on(async {
        let agent = assembly::assemble(&settings, None).await?;
        let keeper = agent.keeper();
        let told = tokio::select! {
            () = agent.run() => Ok(()),
            told = signals::told_to_end() => told.context("cannot listen to signals"),
        };
        keeper.iter().for_each(|keeper| keeper.dismiss());
        told
    })
}

impl Flags {
    fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            mode: Mode::Kubelet,
            root: machine::absolute(&self.root_dir)?,
            node_name: machine::node_name(self.hostname_override.as_deref())?,
            node_ips: Some(self.node_ip.clone())
                .filter(|given| !given.is_empty())
                .unwrap_or_else(machine::addresses),
            runtime_endpoint: self.container_runtime_endpoint.clone(),
            image_endpoint: self.image_service_endpoint.clone(),
            request_timeout: self.runtime_request_timeout,
            sources: self.sources(),
            pod_logs: self.pod_logs_dir.clone(),
            container_logs: unless_empty(&self.container_log_links_dir),
            cgroup_root: self.cgroup_root.clone(),
            systemd_cgroups: self.cgroup_driver == "systemd",
            audit: self.sync_frequency,
            parallel_pulls: self.max_parallel_image_pulls,
            longest_crash_backoff: Duration::from_secs(300),
            cluster_dns: self.cluster_dns.clone(),
            cluster_domain: self.cluster_domain.clone(),
            resolv_conf: unless_empty(&self.resolv_conf),
            pod_pids_limit: u64::try_from(self.pod_max_pids).ok().filter(|limit| *limit > 0),
        })
    }

    fn sources(&self) -> Sources {
        Sources {
            files: self.pod_manifest_path.clone(),
            rescan: self.file_check_frequency,
            url: self.manifest_url.clone().filter(|url| !url.is_empty()),
            url_headers: self.manifest_url_header.clone(),
            fetch: self.http_check_frequency,
        }
    }
}

fn unless_empty(path: &std::path::Path) -> Option<PathBuf> {
    Some(path.to_owned()).filter(|path| !path.as_os_str().is_empty())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as name:value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        flags: Flags,
    }

    #[test]
    fn the_flags_are_consistent() {
        Program::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_go_kubelet_but_for_parallel_pulls() {
        let flags = Program::parse_from(["kubelet", "--hostname-override", " Node-1 "]).flags;
        let settings = flags.settings().unwrap();
        assert_eq!(settings.root, PathBuf::from("/var/lib/kubelet"));
        assert_eq!(settings.node_name, "node-1");
        assert_eq!(settings.sources.rescan, Duration::from_secs(20));
        assert_eq!(settings.audit, Duration::from_secs(60));
        assert_eq!(settings.pod_pids_limit, None);
        assert_eq!(settings.parallel_pulls, 5);
    }
}
