//! The workload of each subject, and its measurement.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use futures::{StreamExt, TryStreamExt, stream};
use oarsman_rig::Kubelet as Agent;
use tokio::time::{Duration, Instant, sleep};

use super::figures::{Burst, Cpu, Figures, Idle, Probes, Restart, Single, Spread};
use super::pods::{HTTP_PROBE, Shape, pod};
use super::process::{self, CpuMeter};
use super::subject::{Bench, NODE};
use super::watch::{PodTimes, PodTimesWatch};

/// How long a pod, or the last of many, may take.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// How many requests a client has under way at a time.
const AT_A_TIME: usize = 10;
/// In milliseconds: pods come at any phase of an agent's periodic work.
const LONGEST_PAUSE: u64 = 1000;

/// The usual interval of scrapes.
pub(super) const SCRAPE_INTERVAL: Duration = Duration::from_secs(15);

/// A part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WorkloadPart {
    /// Pods one after the other
    Singles,
    /// Pods all at once
    Bursts,
    /// Pods at rest, and a restart under them
    Rest,
    /// Pods with an HTTP and a TCP probe every second
    Probes,
    /// Pods at rest, while all metrics are scraped
    Scrapes,
}

/// The size of the workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkloadSize {
    /// Pods one after the other, of each shape.
    pub(super) singles: usize,
    pub(super) bursts: [(usize, Shape); 2],
    /// Pods on the idle node, besides none.
    pub(super) idle: usize,
    /// Pods with probes.
    probed: usize,
    /// How often all metrics are read.
    pub(super) scrapes: u32,
    /// How long the idle node is measured, and how long it has to settle before.
    window: Duration,
    pub(super) settling: Duration,
}

impl WorkloadSize {
    pub(super) const WHOLE: Self = Self {
        singles: 30,
        bursts: [(50, Shape::Plain), (100, Shape::Volumes)],
        idle: 100,
        probed: 100,
        scrapes: 20,
        window: Duration::from_secs(60),
        settling: Duration::from_secs(20),
    };
    pub(super) const QUICK: Self = Self {
        singles: 3,
        bursts: [(5, Shape::Plain), (5, Shape::Volumes)],
        idle: 5,
        probed: 5,
        scrapes: 1,
        window: Duration::from_secs(5),
        settling: Duration::from_secs(2),
    };
}

impl Bench<'_> {
    /// The figures of an agent that is ready and has no pods.
    pub(super) async fn agent_figures(
        &self,
        pod_times: &PodTimesWatch,
        agent: &Agent,
    ) -> Result<Figures> {
        let mut figures = Figures::default();
        if self.wants(WorkloadPart::Rest) {
            figures.idle.push(self.idle(0, Some(agent)).await?);
        }
        if self.wants(WorkloadPart::Singles) {
            figures.plain = self.singles(pod_times, Shape::Plain).await?;
            figures.volumes = self.singles(pod_times, Shape::Volumes).await?;
        }
        if self.wants(WorkloadPart::Bursts) {
            for (count, shape) in self.size.bursts {
                figures.bursts.push(self.burst(pod_times, agent, count, shape).await?);
            }
        }
        if self.wants(WorkloadPart::Probes) {
            figures.probes = Some(self.probes(pod_times, agent).await?);
        }
        if self.wants(WorkloadPart::Scrapes) {
            figures.scrapes = Some(self.scrapes(pod_times, agent).await?);
        }
        if !self.wants(WorkloadPart::Rest) {
            return Ok(figures);
        }
        let names = self.names(self.size.idle);
        self.start_all(pod_times, &names, Shape::Volumes).await?;
        figures.idle.push(self.idle(names.len(), Some(agent)).await?);
        figures.restart = Some(self.restart(pod_times, agent, &names).await?);
        self.stop_all(pod_times, &names).await?;
        Ok(figures)
    }

    /// The agent's processor time while all that happens is probes.
    async fn probes(&self, pod_times: &PodTimesWatch, agent: &Agent) -> Result<Probes> {
        let names = self.names(self.size.probed);
        self.start_all(pod_times, &names, Shape::Probed).await?;
        pod_times.until("ready", &names, MAX_WAIT, |pod_time| pod_time.ready).await?;
        sleep(self.size.settling).await;
        let (changes_before, asked) = (changes(pod_times, &names), self.printed_lines()?);
        let (meter, began) = (self.meter(Some(agent))?, Instant::now());
        sleep(self.size.window).await;
        let (used, took) = (meter.read()?.agent, began.elapsed().as_secs_f64());
        let asked = self.printed_lines()? - asked;
        ensure!(changes(pod_times, &names) == changes_before, "a pod was not ready meanwhile");
        self.stop_all(pod_times, &names).await?;
        Ok(Probes {
            pods: names.len(),
            cpu: 100.0 * used.context("the agent was not measured")? / took,
            asked: f64::from(asked) / took,
        })
    }

    /// How many HTTP probes the containers have printed so far.
    fn printed_lines(&self) -> Result<u32> {
        let logs = files_below(&self.rig.pod_logs())?;
        let texts = logs.into_iter().map(fs::read_to_string);
        let count = |text: io::Result<String>| -> Result<u32> {
            let is_probe = |line: &&str| line.ends_with(HTTP_PROBE);
            Ok(u32::try_from(text?.lines().filter(is_probe).count())?)
        };
        texts.map(count).sum()
    }

    async fn singles(&self, pod_times: &PodTimesWatch, shape: Shape) -> Result<Single> {
        let (mut starts, mut stops) = (Vec::new(), Vec::new());
        for name in self.names(self.size.singles) {
            random_pause().await;
            let name = [name];
            starts.push(self.start_all(pod_times, &name, shape).await?);
            random_pause().await;
            stops.push(self.stop_all(pod_times, &name).await?);
        }
        Ok(Single { start: Spread::of(&starts), stop: Spread::of(&stops) })
    }

    async fn burst(
        &self,
        pod_times: &PodTimesWatch,
        agent: &Agent,
        count: usize,
        shape: Shape,
    ) -> Result<Burst> {
        let (names, meter) = (self.names(count), self.meter(Some(agent))?);
        let running = self.start_all(pod_times, &names, shape).await?;
        let gone = self.stop_all(pod_times, &names).await?;
        Ok(burst(count, shape, running, gone, meter.read()?))
    }

    pub(super) fn meter(&self, agent: Option<&Agent>) -> Result<CpuMeter> {
        let agent = agent.map(Agent::pid).transpose()?;
        CpuMeter::begin(agent.into_iter().collect(), self.cluster.pids())
    }

    /// Creates pods all at once, and returns how long it took until the last one was Running.
    pub(super) async fn start_all(
        &self,
        pod_times: &PodTimesWatch,
        names: &[String],
        shape: Shape,
    ) -> Result<Duration> {
        let began = Instant::now();
        let create = |name: &String| {
            let pod = pod(name, NODE, shape);
            async move { self.api.create_pod(&pod).await }
        };
        all_at_once(names.iter().map(create)).await?;
        Ok(until_running(pod_times, names).await? - began)
    }

    /// Deletes pods all at once, and returns how long it took until the last one was gone.
    pub(super) async fn stop_all(
        &self,
        pod_times: &PodTimesWatch,
        names: &[String],
    ) -> Result<Duration> {
        let began = Instant::now();
        all_at_once(names.iter().map(|name| self.api.delete_pod(name))).await?;
        Ok(until_gone(pod_times, names).await? - began)
    }

    /// The costs of an idle node, after it has settled.
    pub(super) async fn idle(&self, pods: usize, agent: Option<&Agent>) -> Result<Idle> {
        sleep(self.size.settling).await;
        let pids: Vec<u32> = agent.map(Agent::pid).transpose()?.into_iter().collect();
        let runtime = process::runtime(self.rig)?;
        let look =
            || Ok::<_, anyhow::Error>((process::cpu_time(&pids)?, process::cpu_time(&runtime)?));
        let (before, began) = (look()?, Instant::now());
        sleep(self.size.window).await;
        let (after, took) = (look()?, began.elapsed());
        let percent = |used: Duration| 100.0 * used.as_secs_f64() / took.as_secs_f64();
        Ok(Idle {
            pods,
            pss_mib: pids.first().map(|pid| process::pss_mib(*pid)).transpose()?,
            cpu: agent.map(|_| percent(after.0 - before.0)),
            runtime_cpu: percent(after.1 - before.1),
        })
    }

    /// The agent is restarted while its pods run, and gets a new pod at that moment.
    async fn restart(
        &self,
        pod_times: &PodTimesWatch,
        agent: &Agent,
        names: &[String],
    ) -> Result<Restart> {
        let (turns, restarts) = changes(pod_times, names);
        agent.terminate(MAX_WAIT).await?;
        let began = Instant::now();
        agent.start()?;
        let new = self.names(1);
        self.start_all(pod_times, &new, Shape::Plain).await?;
        let running = began.elapsed();
        self.stop_all(pod_times, &new).await?;
        sleep(self.size.settling).await;
        let after = changes(pod_times, names);
        Ok(Restart {
            pods: names.len(),
            running: running.as_secs_f64(),
            flips: after.0 - turns,
            restarts: after.1 - restarts,
        })
    }
}

/// How often pods changed between ready and not ready, and their containers were restarted.
fn changes(pod_times: &PodTimesWatch, names: &[String]) -> (usize, u64) {
    let times = pod_times.times();
    let seen: Vec<&PodTimes> = names.iter().filter_map(|name| times.get(name)).collect();
    (seen.iter().map(|it| it.ready_changes).sum(), seen.iter().map(|it| it.restarts).sum())
}

/// All files of a directory and of those in it.
fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut directories) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => directories.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    Ok(files)
}

pub(super) fn burst(
    pods: usize,
    shape: Shape,
    running: Duration,
    gone: Duration,
    cpu: Cpu,
) -> Burst {
    Burst {
        pods,
        with_volumes: shape == Shape::Volumes,
        running: running.as_secs_f64(),
        gone: gone.as_secs_f64(),
        cpu: Some(cpu),
    }
}

pub(super) async fn all_at_once<F: Future<Output = Result<()>>>(
    requests: impl Iterator<Item = F>,
) -> Result<()> {
    stream::iter(requests).buffer_unordered(AT_A_TIME).try_collect::<()>().await
}

pub(super) async fn until_running(pod_times: &PodTimesWatch, names: &[String]) -> Result<Instant> {
    let seen = pod_times.until("Running", names, MAX_WAIT, |pod_time| pod_time.running).await?;
    seen.into_iter().max().context("no pod to wait for")
}

pub(super) async fn until_gone(pod_times: &PodTimesWatch, names: &[String]) -> Result<Instant> {
    let seen = pod_times.until("gone", names, MAX_WAIT, |pod_time| pod_time.gone).await?;
    seen.into_iter().max().context("no pod to wait for")
}

pub(super) async fn random_pause() {
    let drawn = RandomState::new().build_hasher().finish() % LONGEST_PAUSE;
    sleep(Duration::from_millis(drawn)).await;
}
