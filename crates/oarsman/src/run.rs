//! `oarsman run`: pods here and now, as a guest of whatever else runs on this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use oarsman_agent::Command;
use oarsman_core::duration;
use oarsman_core::ledger::Mode;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::assembly::{self, Agent};
use crate::logging::{Format, Limits, Logging, Loudness};
use crate::settings::{Settings, Sources};
use crate::{machine, signals, threads};

/// What pods are run, and where.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// A directory or file of pod manifests.
    manifests: PathBuf,
    /// Below which everything of this agent lies.
    #[arg(long, default_value = "/var/lib/oarsman")]
    root_dir: PathBuf,
    /// The socket of the container runtime.
    #[arg(long, default_value = "unix:///run/containerd/containerd.sock")]
    runtime: String,
    /// The cgroup below which those of the pods are; by default one of this agent's own.
    #[arg(long)]
    cgroup_root: Option<String>,
    /// The node's name, if it is not the machine's.
    #[arg(long)]
    hostname_override: Option<String>,
    /// How often everything is counted, to catch what events did not tell.
    #[arg(long, default_value = "1m", value_parser = duration::parse)]
    sync_frequency: Duration,
    /// How much the agent says of itself: 4 and more for those who look for a fault.
    #[arg(long, short, default_value_t = 2)]
    v: u32,
    /// Where it says so; `-` for here.
    #[arg(long, default_value = "-")]
    log_file: PathBuf,
    /// What its lines look like.
    #[arg(long, value_enum, default_value_t)]
    logging_format: Format,
}

/// Runs pods until interrupted, and takes them down then.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    flags.logging().start()?;
    let settings = flags.settings()?;
    threads::work_on(until_told(&settings))
}

async fn until_told(settings: &Settings) -> Result<()> {
    let agent = assembly::assemble(settings).await?;
    let leaving = CancellationToken::new();
    let (commands, keeper) = (agent.commands(), agent.keeper());
    let told = async {
        signals::told_to_end().await.context("cannot listen to signals")?;
        tracing::info!("taking the pods down; interrupt again to leave them");
        leaving.cancel();
        let (tell, empty) = oneshot::channel();
        commands.send(Command::TellWhenEmpty(tell)).await.context("the agent has ended")?;
        tokio::select! {
            empty = empty => empty.context("the agent has ended"),
            again = signals::told_to_end() => again.context("cannot listen to signals"),
        }
    };
    let told = tokio::select! {
        () = Agent::run(agent.until(&leaving)) => Ok(()),
        told = told => told,
    };
    keeper.iter().for_each(|keeper| keeper.dismiss());
    told
}

impl Flags {
    fn logging(&self) -> Logging {
        let here = self.log_file == Path::new("-");
        let file = (!here).then(|| (self.log_file.clone(), Limits::default()));
        Logging { loudness: Loudness::of(self.v), format: self.logging_format, file }
    }

    fn settings(&self) -> Result<Settings> {
        let root = machine::absolute(&self.root_dir)?;
        Ok(Settings {
            mode: Mode::Guest,
            node_name: machine::node_name(self.hostname_override.as_deref())?,
            node_ips: machine::addresses(),
            runtime_endpoint: self.runtime.clone(),
            image_endpoint: None,
            request_timeout: Duration::from_secs(120),
            sources: Sources {
                files: Some(self.manifests.clone()),
                rescan: Duration::from_secs(20),
                ..Sources::default()
            },
            pod_logs: root.join("logs"),
            container_logs: None,
            cgroup_root: self.cgroup_root.clone().unwrap_or_else(|| own_cgroup(&root)),
            systemd_cgroups: false,
            audit: self.sync_frequency,
            parallel_pulls: 5,
            longest_crash_backoff: Duration::from_secs(300),
            cluster_dns: Vec::new(),
            cluster_domain: String::new(),
            resolv_conf: Some("/etc/resolv.conf".into()),
            pod_pids_limit: None,
            root,
        })
    }
}

/// A cgroup that follows from the root directory, so that two agents never share one.
fn own_cgroup(root: &Path) -> String {
    let name = root.display().to_string().trim_matches('/').replace(['/', '.'], "-");
    format!("/oarsman-{name}")
}
