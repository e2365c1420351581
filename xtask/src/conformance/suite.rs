//! Builds and runs the official tests.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use oarsman_rig::parts::kubernetes::Program;
use tokio::process::Command;
use tokio::time::{Instant, timeout};

/// All tests of a cluster.
pub(super) const E2E: Program =
    Program { name: "e2e.test", package: "k8s.io/kubernetes/test/e2e", is_test: true };
/// Runs the tests, several at a time, at the version that they were written for.
pub(super) const GINKGO: Program = Program::command("ginkgo", "github.com/onsi/ginkgo/v2/ginkgo");
/// The program of most of their pods.
pub(super) const AGNHOST: Program =
    Program::command("agnhost", "k8s.io/kubernetes/test/images/agnhost");
/// Prints its effective user id.
pub(super) const NNP: Program = Program::command("nnp", "k8s.io/kubernetes/test/images/nonewprivs");
/// All of them.
pub(super) const PROGRAMS: [Program; 4] = [E2E, GINKGO, AGNHOST, NNP];

/// The file ginkgo writes its report to.
pub(super) const REPORT: &str = "report.json";
const LOG: &str = "ginkgo.log";
/// The label filter: the tests that a node has to pass, without those that need a node of their own, take long or fail at times.
const LABELS: &str = "NodeConformance && !Serial && !Disruptive && !Slow && !Flaky";
/// How long ginkgo may take to end after its deadline.
const GRACE: Duration = Duration::from_secs(300);
/// The deadline of a query to the test program.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// The selection of tests, and how they are run.
pub(super) struct TestSelection<'a> {
    pub(super) focus: Option<&'a str>,
    pub(super) processes: u8,
    /// The deadline; what ran until then is reported.
    pub(super) limit: Duration,
}

/// Runs the tests and returns how long it took. Their results are in the report.
pub(super) async fn run(
    kubeconfig: &Path,
    kept: &Path,
    chosen: &TestSelection<'_>,
) -> Result<Duration> {
    let log = File::create(kept.join(LOG))?;
    let mut command = Command::new(GINKGO.path()?);
    command.args(arguments(kubeconfig, kept, chosen)?);
    // Tests write into the directory they run in.
    command.current_dir(kept).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let began = Instant::now();
    let mut ginkgo = command.spawn().context("cannot start ginkgo")?;
    println!("conformance: the tests run; see {}", kept.join(LOG).display());
    let limit = chosen.limit + GRACE;
    let ended = timeout(limit, ginkgo.wait()).await;
    let status = ended.with_context(|| format!("ginkgo did not end within {limit:?}"))??;
    let took = began.elapsed();
    ensure!(kept.join(REPORT).exists(), "ginkgo ended with {status} and left no report");
    Ok(took)
}

fn arguments(kubeconfig: &Path, kept: &Path, chosen: &TestSelection<'_>) -> Result<Vec<String>> {
    let mut arguments = vec![
        format!("--procs={}", chosen.processes),
        format!("--timeout={}s", chosen.limit.as_secs()),
        format!("--label-filter={LABELS}"),
        format!("--output-dir={}", kept.display()),
        format!("--json-report={REPORT}"),
        "--no-color".to_owned(),
    ];
    arguments.extend(chosen.focus.map(|focus| format!("--focus={focus}")));
    arguments.push(E2E.path()?.display().to_string());
    arguments.extend([
        "--".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        "--provider=skeleton".to_owned(),
        "--num-nodes=1".to_owned(),
        // It would ask the node for its metrics for two minutes after each failure; the agent's log is kept anyway.
        "--dump-logs-on-failure=false".to_owned(),
        format!("--report-dir={}", kept.display()),
        format!("--e2e-output-dir={}", kept.display()),
    ]);
    Ok(arguments)
}

/// Fails when the tests need another version of one of our images.
pub(super) async fn check_images(names: &[&str]) -> Result<()> {
    let mut command = Command::new(E2E.path()?);
    let asked =
        timeout(QUERY_TIMEOUT, command.arg("--list-images").kill_on_drop(true).output()).await;
    let listed = asked.context("e2e.test does not list its images")??;
    let listed = String::from_utf8(listed.stdout)?;
    let missing: Vec<&&str> =
        names.iter().filter(|name| !listed.lines().any(|line| line.trim() == **name)).collect();
    if !missing.is_empty() {
        bail!(
            "the tests name no image {missing:?}: take the versions of test/utils/image/manifest.go"
        );
    }
    Ok(())
}
