//! The parts of the scenario harness, without an agent: proxy, inspector, agent process, and clean-up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use oarsman_cri::{ErrorCode, RemoteRuntime, Runtime};
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerEventType, ContainerMetadata, CreateContainerRequest, ImageSpec,
    LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxFilter, PodSandboxMetadata,
    RunPodSandboxRequest,
};
use oarsman_e2e::inspect::{always, eventually};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::proxy::{CallFilter, RuleAction};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_e2e::{program, scenario, scenarios};
use oarsman_host::{cgroups, mounts};
use oarsman_rig::{ContainerdFlavour, images};
use tokio::time::{Instant, timeout};

const MAX_WAIT: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let scenarios = scenarios![
        the_inspector_sees_a_pods_lifecycle,
        one_pods_calls_are_held_and_others_go_on,
        calls_are_failed_and_delayed_by_rule,
        every_call_is_written_down,
        dropping_a_held_call_ends_its_wait,
        events_pass_without_delay,
        an_agent_is_started_measured_and_ended,
        an_agent_that_does_not_end_is_killed_and_reported,
        the_program_is_built_before_the_tests,
    ];
    scenario::main(&[ContainerdFlavour::Built, ContainerdFlavour::Debian], &scenarios)
}

/// A pod made by CRI calls, as an agent would.
struct CriPod {
    client: RemoteRuntime,
    config: PodSandboxConfig,
    sandbox: String,
}

fn config(cx: &ScenarioContext, name: &str) -> PodSandboxConfig {
    let uid = format!("uid-{name}");
    PodSandboxConfig {
        log_directory: cx.rig().pod_logs().join(name).display().to_string(),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: format!("{}/pod{uid}", cx.rig().cgroup_parent()),
            ..LinuxPodSandboxConfig::default()
        }),
        metadata: Some(PodSandboxMetadata {
            uid,
            name: name.to_owned(),
            namespace: "default".to_owned(),
            attempt: 0,
        }),
        ..PodSandboxConfig::default()
    }
}

impl CriPod {
    async fn run(cx: &ScenarioContext, client: RemoteRuntime, name: &str) -> Result<Self> {
        let config = config(cx, name);
        let request = RunPodSandboxRequest { config: Some(config.clone()), ..Default::default() };
        let sandbox = client.run_pod_sandbox(request).await?;
        Ok(Self { client, config, sandbox })
    }

    /// Starts a container `main` and returns its id.
    async fn start(&self, attempt: u32, script: &[&str]) -> Result<String> {
        let restarts = ("io.kubernetes.container.restartCount".to_owned(), attempt.to_string());
        let container = ContainerConfig {
            metadata: Some(ContainerMetadata { name: "main".to_owned(), attempt }),
            image: Some(ImageSpec { image: images::SCRIPT.to_owned(), ..ImageSpec::default() }),
            args: script.iter().map(|step| (*step).to_owned()).collect(),
            annotations: [restarts].into(),
            log_path: format!("main-{attempt}.log"),
            ..ContainerConfig::default()
        };
        let request = CreateContainerRequest {
            pod_sandbox_id: self.sandbox.clone(),
            config: Some(container),
            sandbox_config: Some(self.config.clone()),
        };
        let id = self.client.create_container(request).await?;
        self.client.start_container(&id).await?;
        Ok(id)
    }

    /// Removes the pod, and the files that an agent would remove with it.
    async fn remove(self) -> Result<()> {
        self.client.stop_pod_sandbox(&self.sandbox).await?;
        self.client.remove_pod_sandbox(&self.sandbox).await?;
        let logs = PathBuf::from(&self.config.log_directory);
        if logs.exists() {
            fs::remove_dir_all(logs)?;
        }
        let group = PathBuf::from(self.config.linux.unwrap_or_default().cgroup_parent);
        for hierarchy in cgroups::hierarchies(&mounts::current()?) {
            let removed = async || Ok(hierarchy.remove(&group).is_ok());
            eventually(MAX_WAIT, "the pod's group goes", removed, |gone| *gone).await?;
        }
        Ok(())
    }
}

async fn the_inspector_sees_a_pods_lifecycle(cx: &ScenarioContext) -> Result<()> {
    let look = cx.inspector();
    assert!(look.pod("seen").await?.is_gone());
    let pod = CriPod::run(cx, cx.rig().client()?, "seen").await?;
    pod.start(0, &["out:one", "err:two", "exit:3"]).await?;
    let see = async || look.pod("seen").await;
    let ended = |seen: &oarsman_e2e::inspect::ObservedPod| {
        seen.container("main").is_ok_and(|main| main.has_exited())
    };
    let seen = eventually(MAX_WAIT, "it ends", see, ended).await?;
    let main = seen.container("main")?;
    assert_eq!((main.exit_code, main.restarts, main.attempt), (3, Some(0), 0));
    // A container that ends at once may have ended, by its time stamps, before it had started: the two are taken by different processes.
    assert!(main.created <= main.started && main.created < main.finished, "{main:?}");
    let mut texts = main.log_texts()?;
    texts.sort();
    assert_eq!(texts, ["one", "two"]);
    assert!(look.processes(&main.id).await?.is_empty());

    let id = pod.start(1, &["child:1m", "out:ready", "forever"]).await?;
    let ready = |seen: &oarsman_e2e::inspect::ObservedPod| {
        let texts = seen.container("main").and_then(|main| main.log_texts());
        texts.is_ok_and(|texts| texts == ["ready"])
    };
    let seen = eventually(MAX_WAIT, "it is ready", see, ready).await?;
    assert_eq!(seen.all("main").iter().map(|main| main.attempt).collect::<Vec<_>>(), [0, 1]);
    assert!(seen.runs("main") && seen.sandbox()?.is_ready && seen.uid() == "uid-seen");
    assert_eq!(look.processes(&id).await?.len(), 2);
    let groups = look.groups("uid-seen")?;
    let group = groups.first().context("a pod has a group")?;
    assert!(group.ends_with("poduid-seen"), "{groups:?}");
    assert!(look.group_value(group, "cpu.shares")?.parse::<u64>()? > 0);
    always(Duration::from_millis(300), "it runs", see, |seen| seen.runs("main")).await?;
    pod.remove().await?;
    assert!(look.pod("seen").await?.is_gone());
    Ok(())
}

async fn one_pods_calls_are_held_and_others_go_on(cx: &ScenarioContext) -> Result<()> {
    let proxy = cx.proxy().await?;
    let rule =
        proxy.add_rule(CallFilter::all().named("RunPodSandbox").about("held"), RuleAction::Hold);
    let held = CriPod::run(cx, proxy.client()?, "held");
    let others = async {
        rule.wait_until_held(1, MAX_WAIT).await?;
        let free = CriPod::run(cx, proxy.client()?, "free").await?;
        free.start(0, &["forever"]).await?;
        assert!(cx.inspector().pod("free").await?.runs("main"));
        assert!(cx.inspector().pod("held").await?.is_gone());
        assert_eq!((rule.applied(), rule.waiting()), (1, 1));
        rule.release();
        anyhow::Ok(free)
    };
    let (held, free) = tokio::try_join!(held, others)?;
    let id = held.start(0, &["on-term:exit:0", "forever"]).await?;
    // By the pod's UID, by the sandbox's id, and by the container's own.
    for name in ["uid-held", &held.sandbox, &id] {
        let rule =
            proxy.add_rule(CallFilter::all().named("StopContainer").about(name), RuleAction::Hold);
        let client = proxy.client()?;
        let stop = client.stop_container(&id, Duration::from_secs(5));
        let release = async {
            rule.wait_until_held(1, MAX_WAIT).await?;
            assert_eq!(rule.waiting(), 1, "{name}");
            rule.release();
            anyhow::Ok(())
        };
        let (stopped, released) = tokio::join!(stop, release);
        released?;
        stopped?;
    }
    held.remove().await?;
    free.remove().await
}

async fn calls_are_failed_and_delayed_by_rule(cx: &ScenarioContext) -> Result<()> {
    let proxy = cx.proxy().await?;
    let which = || CallFilter::all().named("RunPodSandbox").first(1);
    let rule = proxy.add_rule(which(), RuleAction::Fail(ErrorCode::Unavailable));
    let failed = CriPod::run(cx, proxy.client()?, "failed").await.err().context("it fails")?;
    assert!(format!("{failed:#}").contains("unavailable"), "{failed:#}");
    assert!(cx.inspector().pods().await?.is_empty());
    rule.release();
    let _rule = proxy.add_rule(which(), RuleAction::FailAnswer(ErrorCode::Unknown));
    assert!(CriPod::run(cx, proxy.client()?, "made").await.is_err());
    let sandbox = cx.inspector().pod("made").await?.sandbox()?.id.clone();
    let pod = CriPod { client: proxy.client()?, config: config(cx, "made"), sandbox };

    let delay = Duration::from_millis(300);
    let _rule = proxy.add_rule(CallFilter::all().named("Status"), RuleAction::Delay(delay));
    let start = Instant::now();
    proxy.client()?.status().await?;
    assert!(start.elapsed() >= delay);

    let rule = proxy.add_rule(CallFilter::all().named("Version"), RuleAction::HoldAnswer);
    let client = proxy.client()?;
    let answered = tokio::spawn(async move { client.version().await });
    rule.wait_until_held(1, MAX_WAIT).await?;
    assert!(!answered.is_finished());
    rule.release();
    answered.await??;
    pod.remove().await
}

async fn every_call_is_written_down(cx: &ScenarioContext) -> Result<()> {
    let before = CriPod::run(cx, cx.rig().client()?, "before").await?;
    let proxy = cx.proxy().await?;
    assert_eq!(proxy.count(), 0);
    let pod = CriPod::run(cx, proxy.client()?, "told").await?;
    let id = pod.start(0, &["exit:0"]).await?;
    let count = proxy.count();
    let client = proxy.client()?;
    let label = ("io.kubernetes.pod.uid".to_owned(), "uid-told".to_owned());
    let filter = PodSandboxFilter { label_selector: [label].into(), ..Default::default() };
    client.list_pod_sandboxes(Some(filter)).await?;
    client.list_pod_sandboxes(None).await?;
    client.pod_sandbox_status(&before.sandbox).await?;
    assert!(client.container_status("nobody").await.is_err());
    let told = |call: &oarsman_e2e::proxy::RecordedCall| {
        let pod = call.pod.as_ref().map(|pod| pod.name.clone());
        (call.name, call.subject.clone(), pod, call.is_read())
    };
    let some = |text: &str| Some(text.to_owned());
    let calls = proxy.calls();
    let expected = [
        ("RunPodSandbox", some("default/told"), some("told"), false),
        ("CreateContainer", some("default/told/main"), some("told"), false),
        ("StartContainer", some(&id), some("told"), false),
        ("ListPodSandbox", some("uid-told"), some("told"), true),
        ("ListPodSandbox", None, None, true),
        ("PodSandboxStatus", some(&before.sandbox), some("before"), true),
        ("ContainerStatus", some("nobody"), None, true),
    ];
    assert_eq!(calls.iter().map(told).collect::<Vec<_>>(), expected);
    assert!(calls.iter().all(|call| call.took.is_some()));
    assert!(calls.is_sorted_by_key(|call| call.at));
    let failed = calls.iter().filter_map(|call| call.error.as_ref());
    assert_eq!(failed.map(|error| error.is_gone()).collect::<Vec<_>>(), [true]);
    assert_eq!(proxy.calls_since(count).len(), 4);
    before.remove().await?;
    pod.remove().await
}

async fn dropping_a_held_call_ends_its_wait(cx: &ScenarioContext) -> Result<()> {
    let proxy = cx.proxy().await?;
    let rule = proxy.add_rule(CallFilter::all().about("lost"), RuleAction::Hold);
    let client = proxy.client()?;
    let given_up = timeout(Duration::from_millis(300), CriPod::run(cx, client, "lost")).await;
    assert!(given_up.is_err());
    let waiting = async || Ok(rule.waiting());
    eventually(MAX_WAIT, "nobody waits any more", waiting, |waiting| *waiting == 0).await?;
    rule.release();
    let pods = async || cx.inspector().pods().await;
    always(Duration::from_millis(300), "it is never made", pods, Vec::is_empty).await
}

async fn events_pass_without_delay(cx: &ScenarioContext) -> Result<()> {
    let proxy = cx.proxy().await?;
    let events = proxy.client()?.container_events().await;
    let mut events = match cx.rig().flavour() {
        ContainerdFlavour::Debian => {
            assert!(events.is_err_and(|error| error.is_unimplemented()));
            return Ok(());
        }
        _ => events?,
    };
    let pod = CriPod::run(cx, proxy.client()?, "eventful").await?;
    let id = pod.start(0, &["forever"]).await?;
    let next_about = async |events: &mut oarsman_cri::EventStream| loop {
        match timeout(MAX_WAIT, events.next()).await? {
            Some(event) if event.as_ref().is_ok_and(|event| event.container_id != id) => {}
            Some(event) => return Ok(event?.container_event_type()),
            None => bail!("the events ended"),
        }
    };
    assert_eq!(next_about(&mut events).await?, ContainerEventType::ContainerCreatedEvent);
    assert_eq!(next_about(&mut events).await?, ContainerEventType::ContainerStartedEvent);
    let (stopped, event) = tokio::join!(
        async {
            proxy.client()?.stop_container(&id, Duration::ZERO).await?;
            anyhow::Ok(Instant::now())
        },
        async { anyhow::Ok((next_about(&mut events).await?, Instant::now())) },
    );
    let (kind, heard) = event?;
    assert_eq!(kind, ContainerEventType::ContainerStoppedEvent);
    let late = heard.saturating_duration_since(stopped?);
    assert!(late < Duration::from_millis(500), "{late:?} after the stop");
    pod.remove().await
}

/// A shell script in place of the agent's program.
fn fake_program(cx: &ScenarioContext, script: &str) -> Result<PathBuf> {
    let path = cx.scratch().join("stand-in");
    fs::write(&path, format!("#!/bin/busybox sh\n{script}"))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

async fn an_agent_is_started_measured_and_ended(cx: &ScenarioContext) -> Result<()> {
    let script = "echo \"$@ $WHO\"; trap 'exit 0' TERM; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done\n\
         echo ready; while :; do sleep 0.05; done\n";
    let setup = cx.setup()?.program(&fake_program(cx, script)?);
    let node = cx.start(setup.flag("v", "4").env("WHO", "me"))?;
    let said = async || Ok(node.log_tail());
    let log = eventually(MAX_WAIT, "it is ready", said, |log| log.ends_with("ready")).await?;
    assert!(log.starts_with("kubelet --root-dir=/var/tmp/oarsman-rig."), "{log}");
    assert!(log.contains("--hostname-override=node --v=4 me\n"), "{log}");
    assert!(node.cpu_time()? > Duration::ZERO && node.pss()? > 4096);
    node.apply("web", &pod("web").container(script_container("main", &["forever"])))?;
    assert!(
        fs::read_to_string(node.manifests().path().join("web.yaml"))?
            .contains("rig.local/script:1")
    );
    assert_eq!(fs::read_dir(node.manifests().path())?.count(), 1);
    node.manifests().remove("web")?;
    node.manifests().remove("web")?;
    assert_eq!(fs::read_dir(node.manifests().path())?.count(), 0);
    let first = node.pid()?;
    node.kill()?;
    assert!(!node.is_alive() && node.pid().is_err());
    node.restart()?;
    assert_ne!(node.pid()?, first);
    let twice = |log: &String| log.matches("ready").count() == 2;
    eventually(MAX_WAIT, "it is ready again", said, twice).await?;
    assert_eq!(node.terminate(MAX_WAIT).await?.code(), Some(0));
    // The harness is to end an agent that runs.
    node.start()
}

async fn an_agent_that_does_not_end_is_killed_and_reported(cx: &ScenarioContext) -> Result<()> {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done\n";
    let node = cx.start(cx.setup()?.program(&fake_program(cx, script)?))?;
    let said = async || Ok(node.log_tail());
    eventually(MAX_WAIT, "it is ready", said, |log| log == "ready").await?;
    let error = node.terminate(Duration::from_millis(300)).await.err().context("it stays")?;
    assert_eq!(error.to_string(), "the agent did not end within 300ms; its log:\nready");
    assert!(!node.is_alive());
    Ok(())
}

async fn the_program_is_built_before_the_tests(_: &ScenarioContext) -> Result<()> {
    let program = program::path()?;
    assert!(program.is_file(), "{}", program.display());
    Ok(())
}
