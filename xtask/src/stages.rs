//! `cargo xtask test`: the stages of `./test`, one after the other, each timed.

mod list;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use list::{STAGES, Stage};

/// Runs the named stages, or all; stops at the first that fails and says what each one took.
pub(crate) fn run(root: &Path, only: &[String]) -> Result<()> {
    let stages = select(only)?;
    let started = started()?;
    let mut taken = vec![("install and build xtask", elapsed(started)?)];
    for stage in stages {
        println!("\n=== {}: {}", stage.name, stage.what);
        let begun = now()?;
        (stage.run)(root).with_context(|| format!("stage {} failed", stage.name))?;
        taken.push((stage.name, elapsed(begun)?));
    }
    println!("\n=== what each stage took");
    for (name, duration) in &taken {
        println!("{:>7.1} s  {name}", duration.as_secs_f64());
    }
    println!("{:>7.1} s  in all", elapsed(started)?.as_secs_f64());
    Ok(())
}

/// Prints the stages.
pub(crate) fn print_list() {
    for stage in STAGES {
        println!("{:<10} {}", stage.name, stage.what);
    }
}

fn select(only: &[String]) -> Result<Vec<&'static Stage>> {
    if let Some(unknown) = only.iter().find(|name| !STAGES.iter().any(|s| s.name == **name)) {
        bail!("there is no stage {unknown:?}; `./test --list` names them");
    }
    let wanted = |stage: &&Stage| only.is_empty() || only.iter().any(|name| name == stage.name);
    Ok(STAGES.iter().filter(wanted).collect())
}

/// When `./test` began, or now when this was called without it.
fn started() -> Result<Duration> {
    match std::env::var("OARSMAN_TEST_STARTED") {
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
