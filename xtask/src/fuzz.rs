//! `cargo xtask fuzz`: searches for inputs that break a parser, coverage-guided, with libFuzzer on the pinned toolchain.
//!
//! The targets are plain functions (`testing/fuzz`), around which a workspace of its own builds the engine with instrumentation. What
//! is found new is merged into the corpus of the repository, and the figures go to docs/fuzz.md.

mod corpus;
mod engine;
mod figures;
mod page;
mod session;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::command::cache;
use engine::{Engine, EngineTarget};
use figures::TargetFigures;
use session::FuzzSession;

#[derive(clap::Args)]
pub(crate) struct FuzzArguments {
    /// Only these targets; --target may be given several times
    #[arg(long, value_name = "NAME")]
    target: Vec<String>,
    /// How long each target is fuzzed
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// How many targets are fuzzed at a time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
}

/// Fuzzes every target that is asked for; fails when one of them breaks.
pub(crate) fn run(root: &Path, arguments: &FuzzArguments) -> Result<()> {
    let directory = cache()?.join("fuzz");
    let engine = Engine::build(root, &directory)?;
    let targets = chosen(engine.targets()?, &arguments.target)?;
    let session =
        FuzzSession { root, directory: &directory, engine: &engine, minutes: arguments.minutes };
    let results = fuzz_all(&session, &targets, arguments.jobs.into());
    let figures = results.into_iter().collect::<Result<Vec<_>>>()?;
    page::write(root, &figures)?;
    let crashes: u64 = figures.iter().map(|figures| figures.crashes).sum();
    ensure!(
        crashes == 0,
        "{crashes} inputs break a target: fix it, and keep the input in testing/fuzz/regressions"
    );
    Ok(())
}

fn chosen(all: Vec<EngineTarget>, names: &[String]) -> Result<Vec<EngineTarget>> {
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|target| target.name != **name))
    {
        let known: Vec<_> = all.iter().map(|target| target.name.as_str()).collect();
        bail!("{unknown} is no target; there are {}", known.join(", "));
    }
    let is_wanted = |target: &EngineTarget| names.is_empty() || names.contains(&target.name);
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// Targets one after the other, some at a time.
fn fuzz_all(
    session: &FuzzSession<'_>,
    targets: &[EngineTarget],
    jobs: usize,
) -> Vec<Result<TargetFigures>> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = session.fuzz(target).with_context(|| target.name.clone());
            if let Ok(mut results) = results.lock() {
                results.push(result);
            }
        }
    };
    thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    results.into_inner().unwrap_or_default()
}
