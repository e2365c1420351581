//! The scenario harness itself: failures are reported with what is needed, and everything that is left is noticed.
//!
//! These tests run outside of any namespace, and start this same binary anew with scenarios that have to fail, which an environment variable
//! names.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail};
use libtest_mimic::{Arguments, Trial};
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata, RunPodSandboxRequest,
};
use oarsman_e2e::agent_process::AgentProcess;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::{Scenario, ScenarioContext};
use oarsman_e2e::{scenario, scenarios};
use oarsman_rig::ContainerdFlavour;

const ROLE: &str = "STAGE_TEST_ROLE";

fn main() -> ExitCode {
    match std::env::var(ROLE) {
        Ok(role) => scenario::main(&[ContainerdFlavour::Built], &scenarios_of(&role)),
        Err(_) => run_tests(),
    }
}

fn run_tests() -> ExitCode {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let tests: [(&str, fn()); 3] = [
        ("a_failure_is_told_and_the_next_scenario_has_a_new_rig", failure),
        ("what_is_left_behind_fails_the_scenario", leaks),
        ("an_agent_that_ends_badly_fails_the_scenario", bad_end),
    ];
    let trials = tests.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

fn scenarios_of(role: &str) -> Vec<Scenario> {
    match role {
        "failure" => scenarios![fails_with_a_pod, panics, is_clean],
        "leaks" => scenarios![leaves_a_pod, leaves_a_log, is_clean],
        "bad end" => scenarios![ends_badly, is_clean],
        other => panic!("no such role: {other}"),
    }
}

/// Runs a copy to its end: whether it succeeded, and what it printed.
fn run_copy(role: &str) -> (bool, String) {
    let output = Command::new("/proc/self/exe").env(ROLE, role).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn assert_output(role: &str, told: &[&str]) {
    let (succeeded, output) = run_copy(role);
    assert!(!succeeded, "{output}");
    for words in told.iter().chain(&["containerd::is_clean", "1 passed"]) {
        assert!(output.contains(words), "{words:?} is not in:\n{output}");
    }
}

fn failure() {
    let told = ["on purpose", "the agent's log ends:\nwords", "RunPodSandbox default/left", "boo"];
    assert_output("failure", &told);
}

fn leaks() {
    assert_output(
        "leaks",
        &["all pods are taken down; last seen", "left behind:\n  file /var/tmp/"],
    );
}

fn bad_end() {
    assert_output("bad end", &["the agent ended with exit status: 7"]);
}

/// A script in place of an agent, which has printed `words`.
async fn agent(cx: &ScenarioContext, script: &str) -> Result<std::sync::Arc<AgentProcess>> {
    let path = cx.scratch().join("stand-in");
    let script = format!("#!/bin/busybox sh\n{script}; echo words; while :; do sleep 0.05; done");
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    let node = cx.start(cx.setup()?.program(&path))?;
    let said = async || Ok(node.log_tail());
    eventually(Duration::from_secs(20), "it speaks", said, |log| log == "words").await?;
    Ok(node)
}

async fn run_pod(cx: &ScenarioContext) -> Result<()> {
    let metadata = PodSandboxMetadata {
        name: "left".to_owned(),
        uid: "uid".to_owned(),
        namespace: "default".to_owned(),
        attempt: 0,
    };
    let linux = LinuxPodSandboxConfig {
        cgroup_parent: cx.rig().cgroup_parent(),
        ..LinuxPodSandboxConfig::default()
    };
    let config = PodSandboxConfig {
        metadata: Some(metadata),
        linux: Some(linux),
        ..PodSandboxConfig::default()
    };
    let request = RunPodSandboxRequest { config: Some(config), ..Default::default() };
    cx.proxy().await?.client()?.run_pod_sandbox(request).await?;
    Ok(())
}

async fn fails_with_a_pod(cx: &ScenarioContext) -> Result<()> {
    agent(cx, "trap 'exit 0' TERM").await?;
    run_pod(cx).await?;
    bail!("on purpose")
}

async fn panics(_: &ScenarioContext) -> Result<()> {
    panic!("boo")
}

async fn leaves_a_pod(cx: &ScenarioContext) -> Result<()> {
    cx.set_cleanup_timeout(Duration::from_millis(500));
    run_pod(cx).await
}

async fn leaves_a_log(cx: &ScenarioContext) -> Result<()> {
    cx.set_cleanup_timeout(Duration::from_millis(500));
    Ok(fs::write(cx.rig().pod_logs().join("left"), "")?)
}

async fn ends_badly(cx: &ScenarioContext) -> Result<()> {
    agent(cx, "trap 'exit 7' TERM").await?;
    Ok(())
}

async fn is_clean(cx: &ScenarioContext) -> Result<()> {
    assert!(cx.inspector().pods().await?.is_empty());
    assert_eq!(fs::read_dir(cx.rig().pod_logs())?.count(), 0);
    Ok(())
}
