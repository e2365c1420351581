//! `oarsman run`: runs pods from manifests, beside whatever else runs on this machine, and removes them at the end.

mod container_output;
mod detach;
mod exit_code;
mod foreground;
mod leftover_pods;
mod pod_lines;
mod screen;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use oarsman_agent::sources::manifest_set::{self, ManifestSet};
use oarsman_agent::{ImageManagerConfig, NodeStatusConfig};
use oarsman_clock::Clock;
use oarsman_core::admission::Mode;
use oarsman_core::duration;
use oarsman_core::features::FeatureGates;
use oarsman_core::gc::containers::ContainerGcPolicy;
use oarsman_core::image::verification::CredentialVerificationPolicy;
use oarsman_core::log_rotation::LogRotationPolicy;
use oarsman_core::node::NodeProfile;
use oarsman_core::node::addresses::AddressSettings;
use oarsman_core::user_namespace::UserNamespaceSettings;
use oarsman_net::SystemNetwork;

use crate::logging::{LogLineFormat, LogSettings, RotationLimits, Verbosity};
use crate::pod_network_flags::PodNetworkFlags;
use crate::runtime_endpoint::{NamedRuntime, RuntimeEndpoint};
use crate::settings::{AgentSettings, ContainerSettings, CredentialProviders, SourceSettings};
use crate::{lock, machine, threads};

use screen::Screen;

/// How many pods one agent runs.
const MAX_PODS: u32 = 110;
/// The default root directory.
const ROOT: &str = "/var/lib/oarsman";
/// The name of the log file below the root directory.
const LOG: &str = "oarsman.log";

const EXAMPLES: &str = "\
Examples:
  oarsman run pod.yaml                   until Ctrl-C
  oarsman run web.yaml settings/ https://example.org/db.yaml
  oarsman run --detach pod.yaml          in the background: oarsman ps, oarsman stop --all
  oarsman run job.yaml; echo $?          the exit code of a pod that ends";

/// What pods are run, and where.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Files, directories or URLs of pods, and of the ConfigMaps and Secrets they use.
    #[arg(required = true, value_name = "FILE|DIR|URL")]
    places: Vec<String>,
    /// Come back once the pods are looked after, and let them run in the background.
    #[arg(long, short)]
    detach: bool,
    /// Do not show what containers print.
    #[arg(long, short)]
    quiet: bool,
    /// What runs the containers: `embedded`, `containerd` or `crio`, or the socket of a runtime.
    #[arg(
        long,
        value_name = "RUNTIME",
        default_value = "embedded",
        env = "CONTAINER_RUNTIME_ENDPOINT"
    )]
    runtime: NamedRuntime,
    #[command(flatten)]
    pod_network: PodNetworkFlags,
    /// Below which everything of this agent lies.
    #[arg(long, default_value = ROOT, value_name = "DIR")]
    root_dir: PathBuf,
    /// The cgroup below which those of the pods are; by default one of this agent's own.
    #[arg(long, value_name = "GROUP")]
    cgroup_root: Option<String>,
    /// The node's name, if it is not the machine's.
    #[arg(long, value_name = "NAME")]
    hostname_override: Option<String>,
    /// How often everything is counted, to catch what events did not tell.
    #[arg(long, default_value = "1m", value_parser = duration::parse)]
    sync_frequency: Duration,
    /// How much the agent says of itself: 4 and more for those who look for a fault.
    #[arg(long, short, default_value_t = 2)]
    v: u32,
    /// Where it says so; `-` for here, and oarsman.log below the root directory by default.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// What its lines look like.
    #[arg(long, value_enum, default_value_t)]
    logging_format: LogLineFormat,
    /// Set for the one in the background.
    #[arg(long, hide = true)]
    in_background: bool,
}

/// Runs pods until they have ended or the command is interrupted, and removes them then.
pub(crate) fn run(flags: &Flags, clock: &Arc<dyn Clock>) -> Result<ExitCode> {
    if flags.in_background {
        detach::leave_terminal()?;
    }
    let root = machine::canonical_root(&flags.root_dir)?;
    threads::block_on(async {
        let node = machine::node_name(flags.hostname_override.as_deref())?;
        let manifest_set = read(&flags.places, &node).await?;
        if flags.detach && !flags.in_background {
            return detach::detach(&root).await;
        }
        let endpoint = flags.runtime.find()?;
        // The log is the first file in it.
        lock::prepare_root(&root)?;
        let _flush = flags.logging(&root).start(clock).context("cannot start the log")?;
        // A command in the background has no terminal; containers' output is in their logs.
        let quiet = flags.quiet || flags.in_background;
        let settings = flags.settings(root, node, endpoint);
        Box::pin(foreground::run_in_foreground(&settings, manifest_set, quiet, clock)).await
    })
}

/// Reads all manifests before anything is started, so that nothing is half done when one of them is wrong.
async fn read(places: &[String], node: &str) -> Result<ManifestSet> {
    let mut screen = Screen::of_stderr();
    match manifest_set::read_once(places, node, Arc::new(SystemNetwork)).await {
        Ok(manifest_set) => {
            manifest_set
                .warnings()
                .iter()
                .try_for_each(|warning| screen.print(&warning.to_string()))?;
            Ok(manifest_set)
        }
        Err(wrong) => {
            let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            bail!("nothing is run:\n  {}", wrong.join("\n  "))
        }
    }
}

impl Flags {
    fn logging(&self, root: &Path) -> LogSettings {
        let here = self.log_file.as_deref() == Some(Path::new("-"));
        let path = self.log_file.clone().unwrap_or_else(|| root.join(LOG));
        let file = (!here).then(|| (path, RotationLimits::default()));
        LogSettings { verbosity: Verbosity::of(self.v), format: self.logging_format, file }
    }

    fn settings(
        &self,
        root: PathBuf,
        node_name: String,
        runtime_endpoint: RuntimeEndpoint,
    ) -> AgentSettings {
        AgentSettings {
            mode: Mode::Run,
            addresses: AddressSettings { name: node_name.clone(), ..AddressSettings::default() },
            // No API server has dropped a field: what a manifest says is done.
            features: FeatureGates::of(|_| true),
            node_status: node_status_config(&root, &node_name),
            node_name,
            runtime_endpoint,
            image_endpoint: None,
            pod_networks: self.pod_network.choice(),
            tracing: None,
            request_timeout: Duration::from_secs(120),
            sources: SourceSettings::default(),
            cluster: None,
            pod_logs: root.join("logs"),
            container_logs: None,
            log_rotation: Some(LogRotationPolicy::default()),
            container_gc: ContainerGcPolicy::default(),
            cgroup_root: self.cgroup_root.clone().unwrap_or_else(|| own_cgroup(&root)),
            systemd_cgroups: false,
            relist_period: self.sync_frequency,
            parallel_pulls: 5,
            // Images belong to all that use the runtime: none is removed.
            images: ImageManagerConfig {
                verification: Some(CredentialVerificationPolicy::default()),
                ..ImageManagerConfig::default()
            },
            providers: CredentialProviders::default(),
            longest_crash_backoff: Duration::from_secs(300),
            cluster_dns: Vec::new(),
            cluster_domain: String::new(),
            resolv_conf: Some("/etc/resolv.conf".into()),
            pod_pids_limit: None,
            containers: ContainerSettings::default(),
            allowed_unsafe_sysctls: Vec::new(),
            user_namespaces: UserNamespaceSettings::of_root(&root.display().to_string(), MAX_PODS),
            root,
        }
    }
}

/// `oarsman run` registers no node, but pods may read the node's name, addresses and resources through the downward API.
fn node_status_config(root: &Path, name: &str) -> NodeStatusConfig {
    let (lasts, name) = (Duration::from_secs(40), name.to_owned());
    NodeStatusConfig {
        profile: NodeProfile {
            name,
            max_pods: MAX_PODS,
            counts_storage: true,
            ..NodeProfile::default()
        },
        machine: machine::facts::read(root),
        registers: false,
        look: lasts,
        report: lasts,
        lease: lasts,
    }
}

/// A cgroup whose name follows from the root directory, so that two agents never share one.
fn own_cgroup(root: &Path) -> String {
    let name = root.display().to_string().trim_matches('/').replace(['/', '.'], "-");
    format!("/oarsman-{name}")
}
