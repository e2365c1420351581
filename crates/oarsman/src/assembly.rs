//! From settings to an agent that can be run.

mod cluster;
mod runtime;
mod sources;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures::StreamExt;
use oarsman_agent::seams::Seams;
use oarsman_agent::sources::bundle::Bundle;
use oarsman_agent::{
    ActivePodsReader, Book, Command, Config, ContainerHooks, CoreDecisions, Inputs, Membership,
    OpenGate, PodSets,
};
use oarsman_clock::Clock;
use oarsman_cluster::credentials::Connection;
use oarsman_core::config::Settings as OfPods;
use oarsman_core::config::dns::NodeDns;
use oarsman_core::ledger::{Mode, Territory};
use oarsman_core::node::NodeFacts;
use oarsman_core::node::amounts::{allocatable, capacity};
use oarsman_core::report::{NodeReport, RuntimeReport};
use oarsman_core::requeue::Requeue;
use oarsman_core::resources::names::CgroupNames;
use oarsman_core::sources::Source;
use oarsman_host::cgroups::CgroupTree;
use oarsman_host::pod_cgroups::{self, HostCgroups};
use oarsman_images::HostCredentialPlugins;
use oarsman_net::SystemNetwork;
use oarsman_state::{self as state, HostPodFiles, StatusFiles};
use oarsman_sync::latest;
use oarsman_volumes::HostVolumes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::keeper::Held;
use crate::local::{self, Absentees, Desk, Served};
use crate::lock::Lock;
use crate::machine;
use crate::settings::Settings;
use crate::systemd::Systemd;

pub(crate) use runtime::told_cgroup_driver;

use runtime::Facts;

/// Requests that may wait for the agent.
const ROOM_FOR_COMMANDS: usize = 16;

/// An agent that is ready to run, and what it holds for as long as it does.
pub(crate) struct Agent {
    seams: Seams,
    config: Config,
    inputs: Inputs,
    commands: mpsc::Sender<Command>,
    keeper: Option<Arc<Held>>,
    leave: CancellationToken,
    connection: Option<Connection>,
    _socket: Option<Served>,
    _locks: Vec<Lock>,
}

impl Agent {
    /// Who holds its connections when it is killed; to be dismissed when it ends in order.
    pub(crate) fn keeper(&self) -> Option<Arc<Held>> {
        self.keeper.clone()
    }

    /// What it knows, for people to read.
    pub(crate) fn book(&self) -> Arc<Book> {
        Arc::clone(&self.inputs.book)
    }

    /// Its active pods.
    pub(crate) fn pods(&self) -> ActivePodsReader {
        self.inputs.pods.clone()
    }

    /// By which it is asked for things while it runs.
    pub(crate) fn commands(&self) -> mpsc::Sender<Command> {
        self.commands.clone()
    }

    /// By which the API server is asked, if there is one.
    pub(crate) fn client(&self) -> Option<kube::Client> {
        self.connection.as_ref().map(Connection::client)
    }

    /// Done when somebody asks it over its socket to take its pods down and to end.
    pub(crate) fn asked_to_leave(&self) -> CancellationToken {
        self.leave.clone()
    }

    /// Lets its sources fall silent, as if they held no pod any more, once `leaving` is done.
    #[must_use]
    pub(crate) fn until(mut self, leaving: &CancellationToken) -> Self {
        let ending = |(source, pods): (Source, PodSets)| {
            let none = futures::stream::once(std::future::ready(Vec::new()));
            let pods = pods.take_until(leaving.clone().cancelled_owned());
            (source, pods.chain(none).chain(futures::stream::pending()).boxed())
        };
        self.inputs.sources = self.inputs.sources.into_iter().map(ending).collect();
        self
    }

    /// Runs until it is dropped.
    ///
    /// # Errors
    /// When the API server will never know it, such as after a first certificate that was denied.
    pub(crate) async fn run(self) -> Result<()> {
        tracing::info!(root = self.config.territory.root, "the agent runs");
        let systemd = Systemd::of_environment();
        systemd.ready();
        // All of the agent is one future, which is too large for a stack.
        let agent = Box::pin(oarsman_agent::run(self.seams, self.config, self.inputs));
        let connected = async {
            match self.connection {
                Some(connection) => Err(connection.keep().await.into()),
                None => std::future::pending().await,
            }
        };
        let work = async { tokio::join!(agent, systemd.beat(&self.commands)) };
        tokio::select! {
            _ = work => Ok(()),
            lost = connected => lost,
        }
    }
}

/// Puts an agent together; waits for the runtime if that is not there yet.
/// `bundle` is what a person handed over to be run.
pub(crate) async fn assemble(
    settings: &Settings,
    bundle: Option<Bundle>,
    clock: &Arc<dyn Clock>,
) -> Result<Agent> {
    let locks = locks(settings)?;
    let book = Book::new(Arc::clone(clock), about(settings));
    let (away, absentees) = latest::channel(Absentees::new());
    let leave = CancellationToken::new();
    let desk = Desk { book: Arc::clone(&book), away, leave: leave.clone() };
    let socket = socket(settings, desk);
    let keeper = keeper();
    let client = runtime::client(settings, keeper.clone())?;
    let facts = runtime::ask(&client, settings, &book).await;
    let of_pods = of_pods(settings, &facts)?;
    let cgroups = HostCgroups::open(pod_cgroups::Settings {
        names: of_pods.cgroups.clone(),
        resources: of_pods.resources.clone(),
        is_guest: settings.mode == Mode::Guest,
    })?;
    let pod_files = HostPodFiles::open(state::Settings {
        root: settings.root.clone(),
        pod_logs: settings.pod_logs.clone(),
        container_logs: settings.container_logs.clone(),
    })?;
    let records = StatusFiles::open(&settings.root)?;
    let joined = cluster::join(settings, bundle.as_ref(), clock).await?;
    let seams = Seams {
        runtime: Arc::new(client),
        cluster: joined.cluster,
        volumes: Arc::new(HostVolumes::new(settings.root.clone(), Arc::clone(clock))),
        cgroups: Arc::new(cgroups),
        pod_files: Arc::new(pod_files),
        records: Arc::new(records),
        credential_plugins: Arc::new(HostCredentialPlugins {
            root: settings.root.clone(),
            programs: settings.providers.directory.clone(),
        }),
        clock: Arc::clone(clock),
        network: Arc::new(SystemNetwork),
        checkpoints: joined.checkpoints,
    };
    let (commands, receiver) = mpsc::channel(ROOM_FOR_COMMANDS);
    let inputs = Inputs {
        sources: without(&absentees, sources::all(settings, &seams, &book, bundle)?),
        gate: Box::new(OpenGate),
        decisions: Arc::new(CoreDecisions),
        measures: Arc::default(),
        book,
        pods: ActivePodsReader::default(),
        container_lifecycle: ContainerHooks::default(),
        background: Vec::new(),
        commands: receiver,
    };
    let config = config(settings, facts, of_pods);
    Ok(Agent {
        seams,
        config,
        inputs,
        commands,
        keeper,
        leave,
        connection: joined.connection,
        _socket: socket,
        _locks: locks,
    })
}

/// What is known of the node before anything is asked.
fn about(settings: &Settings) -> NodeReport {
    NodeReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        node: settings.node_name.clone(),
        root: settings.root.display().to_string(),
        pod_logs: settings.pod_logs.display().to_string(),
        pid: std::process::id(),
        is_guest: settings.mode == Mode::Guest,
        runtime: RuntimeReport {
            endpoint: settings.runtime_endpoint.clone(),
            ..RuntimeReport::default()
        },
        ..NodeReport::default()
    }
}

/// Without its socket an agent cannot be asked anything, which is no reason not to run.
fn socket(settings: &Settings, desk: Desk) -> Option<Served> {
    let told =
        |error: &anyhow::Error| tracing::warn!("commands will not find this agent: {error:#}");
    local::serve(&settings.root, desk).inspect_err(told).ok()
}

/// Sources without pods that were asked to stop.
fn without(
    absentees: &latest::Receiver<Absentees>,
    sources: Vec<(Source, PodSets)>,
) -> Vec<(Source, PodSets)> {
    let filter = |(source, pods)| (source, local::except(pods, absentees.clone()));
    sources.into_iter().map(filter).collect()
}

/// Without a keeper an agent that is killed may leave something half made, which is no reason not to run.
fn keeper() -> Option<Arc<Held>> {
    let held = Held::start();
    let told = |error: &anyhow::Error| tracing::warn!("nobody holds our connections: {error:#}");
    held.inspect_err(told).ok().map(Arc::new)
}

/// Only the one kubelet of a runtime may take pods that nobody knows for orphans.
fn locks(settings: &Settings) -> Result<Vec<Lock>> {
    let mut locks = vec![Lock::of_root(&settings.root)?];
    if settings.mode == Mode::Kubelet {
        locks.push(Lock::of_runtime(&settings.runtime_endpoint)?);
    }
    Ok(locks)
}

fn of_pods(settings: &Settings, facts: &Facts) -> Result<OfPods> {
    let root = PathBuf::from(&settings.cgroup_root);
    let cgroups = CgroupTree::discover(&root).context("this machine's cgroups cannot be used")?;
    let resources = machine::resources(cgroups.version(), settings)?;
    let Membership { profile, machine: facts_of_machine, .. } = &settings.membership;
    let resolv_conf = settings.resolv_conf.as_deref().map(machine::text_of).transpose()?;
    let of_pods = OfPods {
        cgroups: CgroupNames::new(facts.cgroup_driver, &settings.cgroup_root),
        dns: NodeDns {
            servers: settings.cluster_dns.clone(),
            domain: settings.cluster_domain.clone(),
            resolv_conf,
        },
        hosts: machine::text_of("/etc/hosts".as_ref())?,
        seccomp_default: settings.containers.seccomp_default,
        masked_paths: machine::masked_paths(),
        allocatable: allocatable(&profile.reserved, &capacity(profile, facts_of_machine)),
        ..OfPods::of_memory(resources.machine_memory)
    };
    Ok(OfPods { resources, ..of_pods })
}

fn config(settings: &Settings, facts: Facts, of_pods: OfPods) -> Config {
    Config {
        facts: NodeFacts {
            runtime_name: facts.runtime_name,
            host_ips: settings.node_ips.clone(),
            recursive_read_only: facts.recursive_read_only,
        },
        settings: of_pods,
        requeue: Requeue::default(),
        longest_crash_backoff: settings.longest_crash_backoff,
        pod_logs: settings.pod_logs.clone(),
        audit: settings.audit,
        parallel_pulls: settings.parallel_pulls,
        providers: settings.providers.known.clone(),
        territory: Territory { mode: settings.mode, root: settings.root.display().to_string() },
        membership: settings.cluster.as_ref().map(|_| settings.membership.clone()),
    }
}
