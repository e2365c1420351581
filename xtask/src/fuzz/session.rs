//! Fuzzes one target: fills its working corpus, runs the engine, and stores what was found.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::corpus::{self, count_files};
use super::engine::{Engine, EngineTarget};
use super::figures::{EngineLog, TargetFigures};

/// An input that takes longer is a crash, in seconds: the slowest takes milliseconds.
const TIMEOUT: u64 = 5;
/// An input that takes more memory is a crash, in MiB.
const MEMORY: u64 = 1024;

/// What all targets are fuzzed with.
pub(super) struct FuzzSession<'a> {
    pub(super) root: &'a Path,
    /// Working corpora, crashes and logs.
    pub(super) directory: &'a Path,
    pub(super) engine: &'a Engine,
    pub(super) minutes: u64,
}

impl FuzzSession<'_> {
    /// Fuzzes a target, and merges what is new into the corpus of the repository.
    pub(super) fn fuzz(&self, target: &EngineTarget) -> Result<TargetFigures> {
        let place = self.directory.join(&target.name);
        let (inputs, crashes) = (place.join("corpus"), fresh(place.join("crashes"))?);
        fs::create_dir_all(&inputs)?;
        corpus::fill(self.root, self.engine, target, &inputs)?;
        println!("{}: {} minutes from {} inputs", target.name, self.minutes, count_files(&inputs)?);
        let log = place.join("log");
        let passed = self.run_engine(target, &inputs, &crashes, &log)?;
        let EngineLog { executions, coverage } = EngineLog::parse(&read_log(&log)?);
        let found = count_files(&crashes)?.max(u64::from(!passed));
        let stored = corpus::store(self.root, self.engine, target, &inputs, &place)?;
        println!("{}: {executions} executions, {stored} inputs kept, {found} crashes", target.name);
        if found > 0 {
            println!("{}: see {} and {}", target.name, crashes.display(), log.display());
        }
        let (name, minutes) = (target.name.clone(), self.minutes);
        Ok(TargetFigures { name, minutes, executions, coverage, inputs: stored, crashes: found })
    }

    /// Whether it ran to the end of its time.
    fn run_engine(
        &self,
        target: &EngineTarget,
        inputs: &Path,
        crashes: &Path,
        log: &Path,
    ) -> Result<bool> {
        let mut command = self.engine.command(target);
        command.arg(inputs);
        command.arg(format!("-max_total_time={}", self.minutes * 60));
        command.arg(format!("-artifact_prefix={}/", crashes.display()));
        command.args([format!("-timeout={TIMEOUT}"), format!("-rss_limit_mb={MEMORY}")]);
        command.arg("-print_final_stats=1");
        command.stderr(File::create(log)?);
        let status = command.status().with_context(|| format!("the engine for {}", target.name))?;
        Ok(status.success())
    }
}

fn fresh(directory: PathBuf) -> Result<PathBuf> {
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// A panic message may hold any bytes.
fn read_log(log: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(log)?).into_owned())
}
