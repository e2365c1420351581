//! Clients that keep connections of the kubelet server without using them, while pods start and the lease is renewed.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster, is_ready, long_running_pod};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{PodManifest, image, pod};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_e2e::server_clients::{ExecSessions, StalledLogReaders, UnfinishedRequests};
use oarsman_host::processes;
use oarsman_rig::images;
use serde_json::json;
use tokio::time::Instant;

const KUBELET_PORT: u16 = 10250;
const UNFINISHED: usize = 2_000;
const READERS: usize = 100;
/// The server lets 32 clients read the logs of a pod at a time.
const TALKERS: usize = 4;
/// Clients that follow logs, and that execute commands, and the pods that they are spread over.
const FOLLOWERS: usize = 200;
const COMMANDS: usize = 100;
const FOLLOWED: usize = 8;
/// What the agent may have more than before without a client: the pods that were started meanwhile, and what the allocator keeps.
const SPARE_DESCRIPTORS: usize = 16;
const SPARE_KIB: u64 = 24 * 1024;
/// Pods that are started one after the other, without load and with it.
const STARTS: usize = 3;
const LONGEST_START: Duration = Duration::from_secs(5);
/// A lease is renewed every ten seconds, and at most four hundredths later.
const LONGEST_RENEWAL: SignedDuration = SignedDuration::from_secs(12);
const RENEWALS: usize = 2;

pub(super) async fn stalled_log_readers_and_unfinished_requests_delay_neither_a_new_pod_nor_the_lease(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    start_talkers(&cluster, TALKERS).await?;
    let unloaded = start_times(&cluster, "unloaded").await?;

    let server = SocketAddr::from((cluster.plane.node_address(), KUBELET_PORT));
    let mut readers = StalledLogReaders::new(server, cluster.plane.kubelet_client())?;
    for number in 0..READERS {
        readers.follow(&format!("talker-{}", number % TALKERS), "main").await?;
    }
    let requests = UnfinishedRequests::begin(server, UNFINISHED)?;
    let begun = async || Ok(requests.begun());
    eventually(MAX_WAIT, "so many heads were begun", begun, |begun| *begun >= UNFINISHED).await?;

    let before = requests.begun();
    let (loaded, renewals) = tokio::try_join!(start_times(&cluster, "loaded"), renewals(&cluster))?;
    ensure!(requests.begun() > before, "no client came back after it was disconnected");
    let log = cluster.kubectl(&["logs", "talker-0", "--tail=1"]).await?;
    ensure!(log == "end\n", "the API server reads logs meanwhile: {log}");
    drop(requests);
    let read = readers.read_some().await?;
    ensure!(read == READERS, "{read} readers of {READERS}");

    ensure!(median(&loaded) < median(&unloaded) * 3, "without load {unloaded:?}, with {loaded:?}");
    ensure_on_time(&loaded, &renewals)
}

pub(super) async fn followers_of_logs_and_commands_delay_no_pod_and_leave_nothing(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    start_talkers(&cluster, FOLLOWED).await?;
    let server = SocketAddr::from((cluster.plane.node_address(), KUBELET_PORT));
    // The first clients have the agent fill its pools and caches.
    drop(clients(&cluster, server, FOLLOWED, FOLLOWED).await?);
    wait_until_gone(&cluster, None).await?;
    let before = AgentUse::read(&cluster)?;

    let (mut followers, mut commands) = clients(&cluster, server, FOLLOWERS, COMMANDS).await?;
    let (times, renewals) = tokio::try_join!(start_times(&cluster, "new"), renewals(&cluster))?;
    ensure!(followers.read_some().await? == FOLLOWERS, "a follower has lost its log");
    ensure!(commands.echo("still there\n").await? == COMMANDS, "a command has ended");
    drop((followers, commands));
    wait_until_gone(&cluster, Some(before)).await?;
    ensure_on_time(&times, &renewals)
}

/// Clients that follow logs and execute commands, spread over the pods.
async fn clients(
    cluster: &TestCluster,
    server: SocketAddr,
    followers: usize,
    commands: usize,
) -> Result<(StalledLogReaders, ExecSessions)> {
    let identity = cluster.plane.kubelet_client();
    let mut readers = StalledLogReaders::new(server, identity)?;
    for number in 0..followers {
        readers.follow(&format!("talker-{}", number % FOLLOWED), "main").await?;
    }
    let mut sessions = ExecSessions::new(server, identity)?;
    for number in 0..commands {
        sessions.begin(&format!("talker-{}", number % FOLLOWED), "main").await?;
    }
    let answered = sessions.echo("there\n").await?;
    ensure!(answered == commands, "{answered} commands of {commands}");
    Ok((readers, sessions))
}

/// What the agent's process has.
#[derive(Clone, Copy, Debug)]
struct AgentUse {
    descriptors: usize,
    resident_kib: u64,
}

impl AgentUse {
    fn read(cluster: &TestCluster) -> Result<Self> {
        let process = format!("/proc/{}", cluster.agent.pid()?);
        let status = fs::read_to_string(format!("{process}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|line| line.split_whitespace().next());
        Ok(Self {
            descriptors: fs::read_dir(format!("{process}/fd"))?.count(),
            resident_kib: resident.context("a process has VmRSS")?.parse()?,
        })
    }

    fn is_back_at(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors + SPARE_DESCRIPTORS
            && self.resident_kib <= before.resident_kib + SPARE_KIB
    }
}

/// Waits until no command of a client runs and the agent has no more than before.
async fn wait_until_gone(cluster: &TestCluster, before: Option<AgentUse>) -> Result<()> {
    let look = async || {
        let commands = processes::list()?.iter().filter(|process| process.name == "cat").count();
        Ok((commands, AgentUse::read(cluster)?))
    };
    let what = format!("clients have left nothing; before them {before:?}");
    let is_gone = |(commands, now): &(usize, AgentUse)| {
        *commands == 0 && before.is_none_or(|before| now.is_back_at(&before))
    };
    eventually(MAX_WAIT, &what, look, is_gone).await.map(drop)
}

async fn start_talkers(cluster: &TestCluster, count: usize) -> Result<()> {
    for number in 0..count {
        cluster.run(&talker(&format!("talker-{number}"))).await?;
    }
    cluster.wait_until_ready(count).await.map(drop)
}

/// Pods start within five seconds, and the lease is renewed in its period.
fn ensure_on_time(starts: &[Duration], renewals: &[Timestamp]) -> Result<()> {
    ensure!(starts.iter().all(|time| *time < LONGEST_START), "a pod starts late: {starts:?}");
    let is_late = |pair: &[Timestamp]| pair[1].duration_since(pair[0]) > LONGEST_RENEWAL;
    ensure!(!renewals.windows(2).any(is_late), "the lease was renewed late: {renewals:?}");
    Ok(())
}

/// A pod with a log of 2 MiB.
fn talker(name: &str) -> PodManifest {
    let script = "head -c 2097152 /dev/zero | tr '\\0' x; echo; echo end; exec sleep 100000";
    let main = image("main", images::BUSYBOX).with("command", json!(["sh", "-c", script]));
    pod(name).with("terminationGracePeriodSeconds", 1).container(main)
}

/// How long each of some new pods takes from its creation at the API server until it is Ready there.
async fn start_times(cluster: &TestCluster, name: &str) -> Result<Vec<Duration>> {
    let pods: Api<Pod> = Api::default_namespaced(cluster.plane.client().await?);
    let mut times = Vec::new();
    for number in 0..STARTS {
        let name = format!("{name}-{number}");
        // The scheduler's time is not the node's.
        let manifest = long_running_pod(&name).with("nodeName", cluster.agent.name());
        let manifest = serde_json::from_str(&manifest.text())?;
        let begin = Instant::now();
        pods.create(&PostParams::default(), &manifest).await?;
        let look = async || Ok(serde_json::to_value(pods.get(&name).await?)?);
        eventually(MAX_WAIT, &format!("{name} is Ready"), look, is_ready).await?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

/// The times of the last renewal of the lease, and of some more.
async fn renewals(cluster: &TestCluster) -> Result<Vec<Timestamp>> {
    let leases: Api<Lease> = Api::namespaced(cluster.plane.client().await?, "kube-node-lease");
    let mut times = Vec::new();
    while times.len() <= RENEWALS {
        let look = async || {
            let spec =
                leases.get(cluster.agent.name()).await?.spec.context("a lease has a spec")?;
            Ok(spec.renew_time.context("it was renewed")?.0)
        };
        let is_new = |time: &Timestamp| times.last() != Some(time);
        times.push(eventually(MAX_WAIT, "the lease is renewed", look, is_new).await?);
    }
    Ok(times)
}

fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2]
}
