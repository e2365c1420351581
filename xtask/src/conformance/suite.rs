//! Builds and runs the official tests.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use oarsman_rig::parts::kubernetes::Program;
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use super::record::TestResult;

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
/// How long ginkgo may take to end after its deadline.
const GRACE: Duration = Duration::from_secs(300);
/// The deadline of a query to the test program.
const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// A part of the official tests.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TestSuite {
    /// What every node has to pass
    #[default]
    NodeConformance,
    /// The other tests of sig-node
    SigNode,
}

impl TestSuite {
    /// The label filter. Left out is what needs a node of its own, takes long or fails at times.
    fn labels(self) -> &'static str {
        match self {
            Self::NodeConformance => "NodeConformance && !Serial && !Disruptive && !Slow && !Flaky",
            Self::SigNode => {
                "sig-node && !NodeConformance && !Serial && !Disruptive && !Slow && !Flaky && !Alpha"
            }
        }
    }

    /// What names of files and commands of its runs have in addition.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::NodeConformance => "",
            Self::SigNode => "-sig-node",
        }
    }
}

/// The selection of tests, and how they are run.
pub(super) struct TestSelection<'a> {
    pub(super) suite: TestSuite,
    pub(super) focus: Option<&'a str>,
    /// Tests that have run already.
    pub(super) done: &'a [TestResult],
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
        format!("--label-filter={}", chosen.suite.labels()),
        format!("--output-dir={}", kept.display()),
        format!("--json-report={REPORT}"),
        "--no-color".to_owned(),
    ];
    arguments.extend(chosen.focus.map(|focus| format!("--focus={focus}")));
    arguments.extend(chosen.done.iter().map(|test| format!("--skip={}$", escape(&test.name))));
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

/// A regular expression that matches just this text.
fn escape(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || c == ' ' || c == '_';
    text.chars().fold(String::new(), |mut escaped, c| {
        if !is_plain(c) {
            escaped.push('\\');
        }
        escaped.push(c);
        escaped
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_test_that_has_run_matches_literally() {
        let name = r#"[sig-node] Pods should run "a.b" (once) *not* twice"#;
        let escaped = r#"\[sig\-node\] Pods should run \"a\.b\" \(once\) \*not\* twice"#;
        assert_eq!(escape(name), escaped);
    }
}
