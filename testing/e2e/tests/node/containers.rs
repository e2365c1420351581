//! Containers of special kinds: an ephemeral one beside a running pod, and what containers leave behind when they end.

use anyhow::{Result, ensure};
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{ContainerManifest, image, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images;
use serde_json::{Value, json};

/// Prints the command of the first process that it sees, and fails: it must not be started again.
const LOOK: &str = "tr '\\0' ' ' < /proc/1/cmdline; echo; exit 3";

pub(super) async fn an_ephemeral_container_sees_the_processes_of_its_target_and_runs_once(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    let web = pod("web")
        .with("terminationGracePeriodSeconds", 1)
        .container(script_container("main", &["forever"]));
    cluster.run(&web).await?;
    cluster.wait_until_ready(1).await?;
    let arguments = [
        "debug",
        "web",
        "--target=main",
        "--container=debugger",
        "--image-pull-policy=IfNotPresent",
        &format!("--image={}", images::BUSYBOX),
        "--",
        "sh",
        "-c",
        LOOK,
    ];
    cluster.kubectl(&arguments).await?;
    let look = async || Ok(cluster.pod("web").await?["status"].clone());
    let status = eventually(MAX_WAIT, "the ephemeral container has ended", look, |status| {
        status["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    })
    .await?;
    let debugger = &status["ephemeralContainerStatuses"][0];
    ensure!(debugger["name"] == "debugger" && debugger["restartCount"] == 0, "{debugger:#}");
    ensure!(status["phase"] == "Running", "the pod runs on: {status:#}");
    ensure!(status["containerStatuses"][0]["restartCount"] == 0, "{status:#}");
    let pods = cx.inspector().pods().await?;
    let seen = pods.iter().find_map(|pod| pod.container("debugger").ok());
    let texts = seen.map(|debugger| debugger.log_texts()).transpose()?.unwrap_or_default();
    ensure!(texts.iter().any(|line| line.contains("forever")), "it sees {texts:?}");
    Ok(())
}

pub(super) async fn termination_messages_come_from_the_file_or_from_the_log(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    let long = "head -c 5000 /dev/zero | tr '\\0' x > /dev/termination-log; exit 1";
    let numbers: Vec<String> = (21..=100).map(|number| format!("{number}\n")).collect();
    let rows = [
        (
            "file",
            shell("echo loud; echo -n quiet > /dev/termination-log; exit 2", "File"),
            "quiet".to_owned(),
        ),
        ("long", shell(long, "File"), "x".repeat(4096)),
        ("silent", shell("echo loud; exit 2", "File"), String::new()),
        ("log", shell("seq 1 100; exit 2", "FallbackToLogsOnError"), numbers.concat()),
        (
            "written",
            shell(
                "echo loud; echo -n quiet > /dev/termination-log; exit 2",
                "FallbackToLogsOnError",
            ),
            "quiet".to_owned(),
        ),
        ("success", shell("echo loud", "FallbackToLogsOnError"), String::new()),
    ];
    for (name, main, expected) in rows {
        let manifest = pod(name).with("restartPolicy", "Never").container(main);
        cluster.run(&manifest).await?;
        let look = async || Ok(ended(&cluster.pod(name).await?));
        let end = eventually(MAX_WAIT, "its container has ended", look, Value::is_object).await?;
        let message = end["message"].as_str().unwrap_or_default();
        ensure!(message == expected, "{name}: {message:?} and not {expected:?}");
    }
    Ok(())
}

fn ended(pod: &Value) -> Value {
    pod["status"]["containerStatuses"][0]["state"]["terminated"].clone()
}

fn shell(command: &str, policy: &str) -> ContainerManifest {
    image("main", images::BUSYBOX)
        .with("command", json!(["sh", "-c", command]))
        .with("terminationMessagePolicy", policy.into())
}
