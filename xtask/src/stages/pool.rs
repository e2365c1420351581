//! Runs processes in parallel: a bounded number at a time, in a given order, each with its output in a file of its own.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{elapsed, now};

/// A process to be run.
pub(super) struct PoolJob {
    /// The stage that its time counts for.
    pub(super) stage: &'static str,
    /// Its title in messages.
    pub(super) title: String,
    pub(super) command: Command,
    /// The file of its output.
    pub(super) log: PathBuf,
}

/// The result of a job.
pub(super) struct FinishedJob {
    pub(super) stage: &'static str,
    pub(super) time: Duration,
}

/// Runs jobs, this many at a time. After a failure those that run end, and no other begins.
pub(super) fn run(jobs: Vec<PoolJob>, at_once: usize) -> Result<Vec<FinishedJob>> {
    let queue = Mutex::new(VecDeque::from(jobs));
    let (done, failed) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(mut job) = next(&queue, &failed) {
                    match run_job(&mut job) {
                        Ok(finished) => lock(&done).push(finished),
                        Err(error) => lock(&failed).push(format!("{}: {error:#}", job.title)),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn next(queue: &Mutex<VecDeque<PoolJob>>, failed: &Mutex<Vec<String>>) -> Option<PoolJob> {
    if lock(failed).is_empty() { lock(queue).pop_front() } else { None }
}

/// Runs one job, and prints its output when it has ended: lines of several would mix.
fn run_job(job: &mut PoolJob) -> Result<FinishedJob> {
    let log = File::create(&job.log).with_context(|| format!("making {}", job.log.display()))?;
    job.command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let begun = now()?;
    let status = job.command.status().context("cannot start it")?;
    let time = elapsed(begun)?;
    let said = fs::read_to_string(&job.log)?;
    println!("\n--- {}: {:.1} s, {status}\n{}", job.title, time.as_secs_f64(), said.trim());
    if !status.success() {
        bail!("ended with {status}; it said what stands in {}", job.log.display());
    }
    Ok(FinishedJob { stage: job.stage, time })
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn job(stage: &'static str, script: &str, directory: &Path) -> PoolJob {
        let mut command = Command::new("sh");
        command.current_dir(directory).args(["-c", script]);
        let log = directory.join(format!("{stage}.log"));
        PoolJob { stage, title: stage.to_owned(), command, log }
    }

    #[test]
    fn jobs_run_side_by_side_and_their_output_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        // Each makes a pipe and waits for the other: one after the other they would never end.
        let make = Command::new("mkfifo").current_dir(&directory).args(["a", "b"]).status();
        assert!(make.unwrap().success());
        let jobs = vec![
            job("first", "echo x > a; read y < b; echo got $y", directory.path()),
            job("second", "read x < a; echo y > b; echo got $x", directory.path()),
        ];
        let mut done: Vec<&str> = run(jobs, 2).unwrap().iter().map(|it| it.stage).collect();
        done.sort_unstable();
        assert_eq!(done, ["first", "second"]);
        let said = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!((said("first.log"), said("second.log")), ("got y\n".into(), "got x\n".into()));
    }

    #[test]
    fn after_a_failure_nothing_else_begins_and_it_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let jobs =
            vec![job("bad", "exit 3", directory.path()), job("next", "touch it", directory.path())];
        let error = run(jobs, 1).map(drop).unwrap_err().to_string();
        assert!(error.contains("bad: ended with exit status: 3"), "{error}");
        assert!(!directory.path().join("it").exists());
    }
}
