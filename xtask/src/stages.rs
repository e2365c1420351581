//! `cargo xtask test`: the stages of `./test`, each timed and compared with its budget.
//!
//! First come the stages that use the processors themselves, one after the other. Then all stages on the rig, in parallel.

mod advisories;
mod binaries;
mod budget;
mod list;
mod pool;
mod rig_tests;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::command;
use budget::{StageBudgets, StageTime};
use list::{ON_EMBEDDED, STAGES, StageWork, TestStage};

pub(crate) use budget::complaints as budget_complaints;

/// Set by `./test`: its start, in seconds since 1970.
const STARTED: &str = "OARSMAN_TEST_STARTED";
/// The row of a table for what comes before the first stage.
const INSTALL: &str = "install and build xtask";
/// The row for the build of all tests on the rig, and the one for their run.
const BUILD: &str = "build the tests on the rig";
const SIDE_BY_SIDE: &str = "side by side, all tests on the rig";

/// Runs the named stages, or all; stops at the first that fails and prints the time of each.
pub(crate) fn run(root: &Path, only: &[String]) -> Result<()> {
    let stages = select(only)?;
    let budgets = StageBudgets::read(root)?;
    let started = started()?;
    let mut taken = vec![StageTime::new(INSTALL, elapsed(started)?)];
    let outcome = run_stages(root, &stages, &budgets, &mut taken);
    keep_sources(root);
    outcome?;
    let in_all = elapsed(started)?;
    println!("\n=== what each stage took, and its budget");
    print!("{}", budgets.report(&taken, in_all, only.is_empty()));
    Ok(())
}

/// Runs every scenario that the embedded runtime can run, and prints the time of each test binary.
pub(crate) fn run_on_embedded(root: &Path) -> Result<()> {
    let stages: Vec<&TestStage> = ON_EMBEDDED.iter().collect();
    let budgets = StageBudgets::read(root)?;
    let begun = now()?;
    let mut taken = Vec::new();
    run_stages(root, &stages, &budgets, &mut taken)?;
    println!("\n=== what each test binary took");
    print!("{}", budgets.report(&taken, elapsed(begun)?, false));
    Ok(())
}

fn run_stages(
    root: &Path,
    stages: &[&'static TestStage],
    budgets: &StageBudgets,
    taken: &mut Vec<StageTime>,
) -> Result<()> {
    let mut on_the_rig = Vec::new();
    for stage in stages {
        match &stage.work {
            StageWork::Task(task) => {
                println!("\n=== {}: {}", stage.name, stage.what);
                let begun = now()?;
                task(root).with_context(|| format!("stage {} failed", stage.name))?;
                taken.push(StageTime::new(stage.name, elapsed(begun)?));
            }
            StageWork::Tests(tests) => on_the_rig.push((stage.name, tests)),
        }
    }
    if on_the_rig.is_empty() { Ok(()) } else { rig_tests::run(root, &on_the_rig, budgets, taken) }
}

/// Records which sources `./test` has built, so that the next clone with the same ones need not build them again.
fn keep_sources(root: &Path) {
    if std::env::var_os(STARTED).is_none() {
        return;
    }
    let noted =
        command::run(Command::new("bash").current_dir(root).args(["xtask/sources.sh", "keep"]));
    if let Err(error) = noted {
        // The next run builds all our crates anew.
        eprintln!("test: {error:#}");
    }
}

/// Prints the stages.
pub(crate) fn print_list() {
    for stage in STAGES {
        println!("{:<10} {}", stage.name, stage.what);
    }
}

fn select(only: &[String]) -> Result<Vec<&'static TestStage>> {
    if let Some(unknown) = only.iter().find(|name| !STAGES.iter().any(|s| s.name == **name)) {
        bail!("there is no stage {unknown:?}; `./test --list` names them");
    }
    let wanted = |stage: &&TestStage| only.is_empty() || only.iter().any(|name| name == stage.name);
    Ok(STAGES.iter().filter(wanted).collect())
}

/// The start of `./test`, or now when this was called without it.
fn started() -> Result<Duration> {
    match std::env::var(STARTED) {
        Ok(seconds) => Ok(Duration::from_secs(seconds.parse()?)),
        Err(_) => now(),
    }
}

fn elapsed(since: Duration) -> Result<Duration> {
    Ok(now()?.saturating_sub(since))
}

#[expect(clippy::disallowed_methods, reason = "a task reports the time it really took")]
fn now() -> Result<Duration> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?)
}
