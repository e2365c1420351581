//! `cargo xtask conformance`: the official node tests against one node in namespaces of its own.
//!
//! A whole run is kept in a file of `conformance/`, and the page beside it is written anew from all of them. A run with a focus is only printed.

mod cause;
mod page;
mod record;
mod report;
mod runtime;
mod suite;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use oarsman_rig::images::conformance as images;
use oarsman_rig::parts::{self, kubernetes};
use oarsman_rig::{ControlPlane, KubeletOptions, Rig, RigOptions, namespace};

use crate::command::cache;
use crate::kubelet_kind::KubeletKind;
use record::{ConformanceRun, OutcomeCount, RunSubject, TestOutcome, TestResult};
use report::ConformanceReport;
use runtime::TestedRuntime;
use suite::TestSuite;

/// How long a node may take to become ready.
const READY: Duration = Duration::from_secs(120);
/// How long an agent may take to end.
const ENDING: Duration = Duration::from_secs(30);

/// What to run, and against which kubelet.
#[derive(Debug, clap::Args)]
pub(crate) struct ConformanceArguments {
    /// Only tests whose names match; such a run is not kept
    #[arg(long, value_name = "RE")]
    focus: Option<String>,
    /// Which of the tests
    #[arg(long, value_enum, default_value_t)]
    suite: TestSuite,
    /// Go on with a run that was given up, without the tests that it has done
    #[arg(long, conflicts_with = "focus")]
    resume: bool,
    /// Whose node
    #[arg(long, value_enum, default_value_t = KubeletKind::Oarsman)]
    kubelet: KubeletKind,
    /// What runs the containers of the node
    #[arg(long, value_enum, default_value_t)]
    runtime: TestedRuntime,
    /// How many tests at a time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    processes: u8,
    /// After how many minutes the rest is given up
    #[arg(long, default_value_t = 90)]
    minutes: u16,
    /// Only write the page anew from the runs that are kept
    #[arg(long)]
    page: bool,
}

impl ConformanceArguments {
    fn subject(&self) -> RunSubject {
        RunSubject { kubelet: self.kubelet, runtime: self.runtime, suite: self.suite }
    }
}

/// Runs the tests. A failed test is a result; the task fails only without results.
pub(crate) fn run(root: &Path, arguments: &ConformanceArguments) -> ExitCode {
    if arguments.page {
        return exit_code(write_page(&root.join("conformance")));
    }
    if (arguments.kubelet, arguments.runtime) == (KubeletKind::Go, TestedRuntime::Embedded) {
        return exit_code(Err(anyhow!(
            "the embedded runtime is in our program: --kubelet oarsman"
        )));
    }
    let ready = || prepare(root, arguments);
    namespace::run_after(ready, || exit_code(inside(root, arguments)))
}

fn exit_code(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Everything that needs a network.
fn prepare(root: &Path, arguments: &ConformanceArguments) -> Result<()> {
    kubernetes::prepare(&kubernetes::CONTROL_PLANE)?;
    kubernetes::prepare(&suite::PROGRAMS)?;
    parts::conformance::prepare()?;
    if arguments.runtime.is_ours() {
        KubeletKind::Oarsman.prepare(root)?;
    }
    arguments.kubelet.prepare(root)
}

#[tokio::main]
async fn inside(root: &Path, arguments: &ConformanceArguments) -> Result<()> {
    suite::check_images(&images::NAMES).await?;
    fs::create_dir_all(root.join("conformance"))?;
    let kept = make_directory(arguments)?;
    let unfinished = record::unfinished(&cache()?, arguments.subject());
    let earlier = arguments.resume.then(|| record::read(&unfinished)).transpose()?;
    let (flavour, program) = (arguments.runtime.flavour(), Some(KubeletKind::Oarsman.program()?));
    let rig = Rig::start(RigOptions { flavour, program, ..RigOptions::default() }).await?;
    rig.import(&test_images(&rig)?).await?;
    let cluster = ControlPlane::start(&rig).await?;
    let began = versions::time()?;
    let done = earlier.as_ref().map_or(&[][..], |run| &run.tests);
    let ran = against(&rig, &cluster, arguments, (&kept, done)).await;
    cluster.stop()?;
    rig.stop().await?;
    let (report, took) = ran?;
    print_summary(&report, took);
    println!("conformance: everything that was said is in {}", kept.display());
    if arguments.focus.is_some() {
        return Ok(());
    }
    let given_up = report.given_up.join("; ");
    let mut record = to_record(root, arguments, report, (began, took))?;
    if let Some(earlier) = earlier {
        record.continue_from(earlier)?;
    }
    if !given_up.is_empty() {
        record::write_to(unfinished, &record)?;
        bail!("not kept, for it is not whole: {given_up}; go on with --resume");
    }
    keep(root, &record)
}

fn test_images(rig: &Rig) -> Result<Vec<oarsman_rig::images::OciImage>> {
    let ingredients = parts::conformance::prepare()?;
    let (agnhost, nnp) = (suite::AGNHOST.path()?, suite::NNP.path()?);
    let programs = images::ConformancePrograms { agnhost: &agnhost, nnp: &nnp };
    images::build(rig.parts(), &ingredients, programs)
}

/// One run on a node of its own.
async fn against(
    rig: &Rig,
    cluster: &ControlPlane,
    arguments: &ConformanceArguments,
    (kept, done): (&Path, &[TestResult]),
) -> Result<(ConformanceReport, Duration)> {
    let which = arguments.kubelet.implementation()?;
    let agent = oarsman_rig::Kubelet::new(rig, cluster, &which, &KubeletOptions::default())?;
    rig.prepare_agent(agent.root())?;
    agent.start()?;
    let ran = async {
        cluster.until_node_is_ready(agent.name(), READY).await?;
        let chosen = suite::TestSelection {
            suite: arguments.suite,
            focus: arguments.focus.as_deref(),
            done,
            processes: arguments.processes,
            limit: Duration::from_secs(u64::from(arguments.minutes) * 60),
        };
        suite::run(&cluster.admin_kubeconfig(), kept, &chosen).await
    };
    let ran = ran.await;
    // The agent's log is needed most after a failure.
    fs::copy(agent.log(), kept.join("kubelet.log"))?;
    if rig.flavour().has_socket() {
        fs::copy(rig.log(), kept.join("runtime.log"))?;
    }
    let took = ran.with_context(|| format!("see {}", kept.display()))?;
    agent.terminate(ENDING).await?;
    Ok((report::read(&kept.join(suite::REPORT))?, took))
}

/// The directory of a run's output; that of the last run is removed.
fn make_directory(arguments: &ConformanceArguments) -> Result<PathBuf> {
    let directory = cache()?.join("conformance").join(arguments.subject().file_name());
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory)
}

fn print_summary(report: &ConformanceReport, took: Duration) {
    for test in report.tests.iter().filter(|test| test.outcome == TestOutcome::Failed) {
        let message = test.message.as_deref().unwrap_or_default();
        println!("failed: {}\n        {message}", test.name);
    }
    for failure in report.suite_failures.iter().chain(&report.given_up) {
        println!("outside of any test: {failure}");
    }
    let OutcomeCount { passed, failed, skipped } = OutcomeCount::of(report.tests.iter());
    let seconds = took.as_secs();
    println!("conformance: {passed} passed, {failed} failed, {skipped} skipped in {seconds} s");
}

/// The record of what was run now.
fn to_record(
    root: &Path,
    arguments: &ConformanceArguments,
    report: ConformanceReport,
    (began, took): (String, Duration),
) -> Result<ConformanceRun> {
    let subject = arguments.subject();
    let RunSubject { kubelet, runtime, suite } = subject;
    let processes = arguments.processes;
    let suite_flag = match suite {
        TestSuite::NodeConformance => "",
        TestSuite::SigNode => " --suite sig-node",
    };
    let runtime_flag = runtime.flag();
    Ok(ConformanceRun {
        subject,
        number: record::next_number(&record::read_all(&root.join("conformance"))?, subject),
        began,
        command: format!(
            "cargo xtask conformance{suite_flag} --kubelet {kubelet}{runtime_flag} --processes {processes}"
        ),
        processes,
        seconds: took.as_secs(),
        versions: versions::all(root, subject)?,
        suite_failures: report.suite_failures,
        tests: report.tests,
    })
}

fn keep(root: &Path, record: &ConformanceRun) -> Result<()> {
    let directory = root.join("conformance");
    println!("conformance: kept in {}", record::write(&directory, record)?.display());
    write_page(&directory)
}

fn write_page(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)?;
    let path = directory.join("RESULTS.md");
    let text = page::page(record::read_all(directory)?);
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}
