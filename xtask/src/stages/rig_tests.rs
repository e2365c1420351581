//! Runs the stages on the rig in parallel: every process has namespaces, a containerd and a leak check of its own (docs/adr/0018).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::binaries::{self, BuiltTests, TestBinary};
use super::budget::{StageBudgets, StageTime};
use super::list::{ProcessSplit, StageTests, integration_tests};
use super::pool::{self, PoolJob};
use super::{BUILD, SIDE_BY_SIDE, elapsed, now};
use crate::command::cache;

/// The variable with the program that a test binary tests; see testing/e2e/src/program.rs.
const PROGRAM: &str = "OARSMAN_E2E_PROGRAM";
/// The variables with the scenarios that a test binary runs; see testing/e2e/src/scenario/share.rs.
const SHARED: &str = "OARSMAN_SCENARIOS_SHARED";
const ALONE: &str = "OARSMAN_SCENARIOS_ALONE";
/// Scenarios wait for most of their time: more than there are processors.
const AT_ONCE_EACH_PROCESSOR: usize = 2;

/// A stage and its tests.
type OfStage<'a> = (&'static str, &'a StageTests);

/// Builds everything once, runs it in parallel, then what must run alone.
pub(super) fn run(
    root: &Path,
    stages: &[OfStage<'_>],
    budgets: &StageBudgets,
    taken: &mut Vec<StageTime>,
) -> Result<()> {
    println!("\n=== {BUILD}");
    let begun = now()?;
    let built = build(root, stages)?;
    let directory = RunDirectory::create(&built.program)?;
    taken.push(StageTime::new(BUILD, elapsed(begun)?));
    println!(
        "\n=== {SIDE_BY_SIDE}: their output is told when each has ended, and kept in {}",
        directory.0.display()
    );
    let begun = now()?;
    let mut jobs = Vec::new();
    let mut alone = Vec::new();
    for stage in longest_first(stages, budgets) {
        for (name, binary) in built.of(&root.join(stage.1.directory), stage.1.names)? {
            jobs.extend(directory.jobs(stage, &name, &binary)?);
            alone.extend(stage.1.some_alone().then(|| directory.alone(stage, &name, &binary)));
        }
    }
    let at_once = std::thread::available_parallelism()?.get() * AT_ONCE_EACH_PROCESSOR;
    let mut done = pool::run(jobs, at_once)?;
    done.extend(pool::run(alone, 1)?);
    let mut times = BTreeMap::<&str, Duration>::new();
    for job in done {
        *times.entry(job.stage).or_default() += job.time;
    }
    let of_stage = |(name, _): &OfStage<'_>| {
        StageTime::new(name, times.get(name).copied().unwrap_or_default())
    };
    taken.extend(stages.iter().map(of_stage));
    taken.push(StageTime::new(SIDE_BY_SIDE, elapsed(begun)?));
    directory.remove()
}

fn build(root: &Path, stages: &[OfStage<'_>]) -> Result<BuiltTests> {
    let mut names = Vec::new();
    for (_, tests) in stages {
        let own = root.join(tests.directory);
        let of_package = integration_tests(root, |directory| directory == own)?;
        let wanted = |name: &String| tests.names.is_empty() || tests.names.contains(&name.as_str());
        names.extend(of_package.into_iter().filter(wanted));
    }
    binaries::build(root, &names)
}

/// Long stages begin first, so that none of them is left when all else is done.
fn longest_first<'a>(stages: &[OfStage<'a>], budgets: &StageBudgets) -> Vec<OfStage<'a>> {
    let mut stages = stages.to_vec();
    stages.sort_by_key(|(name, tests)| {
        std::cmp::Reverse(budgets.warm(name) / tests.processes() as u64)
    });
    stages
}

/// The directory of a run: the program under test, files that processes share, and their output.
struct RunDirectory(PathBuf);

impl RunDirectory {
    /// Creates it anew, and removes those of runs that failed.
    fn create(program: &Path) -> Result<Self> {
        let all = cache()?.join("tests");
        for entry in fs::read_dir(&all).into_iter().flatten() {
            let path = entry?.path();
            let lives = path.file_name().is_some_and(|pid| Path::new("/proc").join(pid).exists());
            if !lives {
                fs::remove_dir_all(path)?;
            }
        }
        let own = all.join(std::process::id().to_string());
        fs::create_dir_all(&own).with_context(|| format!("making {}", own.display()))?;
        // Another build may replace the file in cargo's directory.
        fs::copy(program, own.join("oarsman"))?;
        Ok(Self(own))
    }

    /// One job for each process that runs a share of the binary's scenarios.
    fn jobs(&self, stage: OfStage<'_>, name: &str, binary: &TestBinary) -> Result<Vec<PoolJob>> {
        let shared = self.0.join(format!("{}-{name}-shared", stage.0));
        fs::create_dir(&shared)?;
        let count = stage.1.processes();
        let jobs = (1..=count).map(|number| {
            let title =
                if count > 1 { format!("{name} {number}/{count}") } else { name.to_owned() };
            let mut job = self.job(stage, title, binary);
            if let ProcessSplit::Shared { .. } = stage.1.split {
                job.command.env(SHARED, &shared);
            }
            job
        });
        Ok(jobs.collect())
    }

    /// The job that runs what the others leave out.
    fn alone(&self, stage: OfStage<'_>, name: &str, binary: &TestBinary) -> PoolJob {
        let mut job = self.job(stage, format!("{name}, alone"), binary);
        job.command.env(ALONE, "1");
        job
    }

    fn job(&self, stage: OfStage<'_>, title: String, binary: &TestBinary) -> PoolJob {
        let (stage, runtime) = (stage.0, stage.1.runtime);
        let title = if runtime.is_some() { format!("{title}, {stage}") } else { title };
        let mut command = std::process::Command::new(&binary.program);
        oarsman_rig::without_package(&mut command);
        command.current_dir(&binary.directory).env(PROGRAM, self.0.join("oarsman"));
        command.envs(runtime.map(|variable| (variable, "1")));
        let log = self.0.join(format!("{}.log", title.replace([' ', '/', ','], "-")));
        PoolJob { stage, title, command, log }
    }

    fn remove(self) -> Result<()> {
        Ok(fs::remove_dir_all(self.0)?)
    }
}
