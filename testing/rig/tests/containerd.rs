//! The rig itself: a containerd that starts, has its images, pulls, and survives what tests do to it.

mod support;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use oarsman_cri::{Deadlines, RemoteRuntime, Runtime};
use oarsman_cri_types::v1::{
    AuthConfig, ContainerState, IdMapping, ImageSpec, NamespaceMode, NamespaceOption,
    PullImageRequest, UserNamespace,
};
use oarsman_host::{cgroups, mounts, processes};
use oarsman_rig::{
    ContainerdFlavour, Registry, RegistryCredentials, RepositoryBehaviour, Rig, RigOptions, images,
    leaks, namespace,
};
use support::{Case, TestPod, block_on, until};

const CASES: &[Case] = &[
    ("the_standard_images_are_on_the_node", standard_images),
    ("containers_run_as_their_image_says", image_configuration),
    ("busybox_has_a_shell", busybox),
    ("a_pod_may_have_a_user_namespace", user_namespace),
    ("images_are_pulled_from_the_registry", pull),
    ("a_private_repository_wants_credentials", private_pull),
    ("a_failing_or_slow_repository_is_noticed", failing_pull),
    ("containers_outlive_a_killed_containerd", kill_and_restart),
    ("a_paused_containerd_does_not_answer_until_resumed", pause_and_resume),
    ("a_containerd_that_cannot_start_shows_its_log", broken_configuration),
    ("debians_containerd_runs_pods_as_well", debian),
    ("a_stopped_rig_leaves_nothing", stop),
    ("a_rig_ends_with_the_test_that_panics", panic_stops_rig),
];

fn main() -> ExitCode {
    namespace::run(|| support::run(CASES))
}

/// Waits until the pod's container has ended, and returns its exit code.
async fn exit_code(rig: &Rig, pod: &TestPod) -> Result<i32> {
    let client = rig.client()?;
    let status = async || client.container_status(&pod.container).await;
    let has_ended = async || Ok(status().await?.state() == ContainerState::ContainerExited);
    until("the container ends", has_ended).await?;
    Ok(status().await?.exit_code)
}

/// What the pod's container has printed so far, line by line.
fn output(pod: &TestPod) -> Result<Vec<String>> {
    let log = fs::read_to_string(pod.logs.join("main.log"))?;
    // TIME STREAM TAGS TEXT
    let lines = log.lines().filter_map(|line| line.splitn(4, ' ').nth(3));
    Ok(lines.map(str::to_owned).collect())
}

fn standard_images(rig: &Rig) -> Result<()> {
    block_on(async {
        let found = rig.client()?.list_images(None).await?;
        for name in [images::PAUSE, images::SCRIPT, images::SCRIPT_AS_USER, images::BUSYBOX] {
            let image = found.iter().find(|image| image.repo_tags.iter().any(|tag| tag == name));
            image.with_context(|| format!("{name} is not among {found:?}"))?;
        }
        Ok(())
    })
}

fn image_configuration(rig: &Rig) -> Result<()> {
    let script = ["id", "env:GREETING", "pwd", "exit:3"];
    block_on(async {
        let pod = TestPod::start(rig, "user", images::SCRIPT_AS_USER, &script).await?;
        assert_eq!(exit_code(rig, &pod).await?, 3);
        assert_eq!(output(&pod)?, ["1000:1000", "hello", "/tmp"]);
        pod.remove().await
    })
}

fn busybox(rig: &Rig) -> Result<()> {
    let script = ["/bin/sh", "-c", "id -u someone; ls -d /tmp | tr a-z A-Z"];
    block_on(async {
        let pod = TestPod::start(rig, "shell", images::BUSYBOX, &script).await?;
        assert_eq!(exit_code(rig, &pod).await?, 0);
        assert_eq!(output(&pod)?, ["1000", "/TMP"]);
        pod.remove().await
    })
}

/// Needs every directory on the way to the container's files to let others pass.
fn user_namespace(rig: &Rig) -> Result<()> {
    let ids = vec![IdMapping { host_id: 1 << 20, container_id: 0, length: 65536 }];
    let users = UserNamespace { mode: NamespaceMode::Pod.into(), uids: ids.clone(), gids: ids };
    let namespaces = NamespaceOption {
        pid: NamespaceMode::Container.into(),
        userns_options: Some(users),
        ..NamespaceOption::default()
    };
    let script = ["id", "cat:/proc/self/uid_map", "touch:/tmp/mine"];
    block_on(async {
        let pod = TestPod::start_in(rig, "users", images::SCRIPT, &script, namespaces).await?;
        assert_eq!(exit_code(rig, &pod).await?, 0);
        let output = output(&pod)?;
        assert_eq!(output[0], "0:0");
        let map: Vec<&str> = output[1].split_ascii_whitespace().collect();
        assert_eq!(map, ["0", "1048576", "65536"]);
        pod.remove().await
    })
}

/// A registry that has the script image under `name`, as an image that the node does not have yet.
fn registry(rig: &Rig, name: &str) -> Result<Registry> {
    let label = [("for".to_owned(), name.to_owned())].into();
    let config = images::ImageConfig { labels: label, ..images::ImageConfig::default() };
    let registry = Registry::start(vec![images::script_image(rig.parts(), name, config)?])?;
    rig.allow_registry(registry.address())?;
    Ok(registry)
}

fn request(image: &str, auth: Option<AuthConfig>) -> PullImageRequest {
    let image = ImageSpec { image: image.to_owned(), ..ImageSpec::default() };
    PullImageRequest { image: Some(image), auth, ..PullImageRequest::default() }
}

fn pull(rig: &Rig) -> Result<()> {
    block_on(async {
        let registry = registry(rig, "some/where/script:7")?;
        let name = registry.name("some/where/script:7");
        rig.client()?.pull_image(request(&name, None)).await?;
        let requests = registry.requests("some/where/script");
        // The node has the layer already, from the script image that was imported.
        assert!(requests.manifests > 0 && requests.blobs == 1, "{requests:?}");
        let pod = TestPod::start(rig, "pulled", &name, &["exit:4"]).await?;
        assert_eq!(exit_code(rig, &pod).await?, 4);
        pod.remove().await?;
        let missing = rig.client()?.pull_image(request(&registry.name("no/such:1"), None)).await;
        ensure!(missing.is_err_and(|error| error.is_gone()), "a missing image is not found");
        Ok(())
    })
}

fn private_pull(rig: &Rig) -> Result<()> {
    block_on(async {
        let registry = registry(rig, "private:1")?;
        let credentials =
            RegistryCredentials { username: "rower".to_owned(), password: "oar".to_owned() };
        let behaviour = RepositoryBehaviour {
            credentials: Some(credentials),
            ..RepositoryBehaviour::default()
        };
        registry.set("private", behaviour);
        let name = registry.name("private:1");
        ensure!(rig.client()?.pull_image(request(&name, None)).await.is_err(), "pulled as nobody");
        assert!(registry.requests("private").denied > 0);
        let auth = AuthConfig {
            username: "rower".to_owned(),
            password: "oar".to_owned(),
            ..AuthConfig::default()
        };
        rig.client()?.pull_image(request(&name, Some(auth))).await?;
        Ok(())
    })
}

fn failing_pull(rig: &Rig) -> Result<()> {
    block_on(async {
        let registry = registry(rig, "moody:1")?;
        let name = registry.name("moody:1");
        registry.set(
            "moody",
            RepositoryBehaviour { failure: Some(403), ..RepositoryBehaviour::default() },
        );
        ensure!(rig.client()?.pull_image(request(&name, None)).await.is_err(), "403 is no error");
        registry.set(
            "moody",
            RepositoryBehaviour {
                delay: Duration::from_secs(600),
                ..RepositoryBehaviour::default()
            },
        );
        let client = rig.client()?;
        let slow = tokio::time::timeout(
            Duration::from_millis(300),
            client.pull_image(request(&name, None)),
        );
        ensure!(slow.await.is_err(), "the registry was to take ten minutes");
        registry.set("moody", RepositoryBehaviour::default());
        rig.client()?.pull_image(request(&name, None)).await?;
        Ok(())
    })
}

fn kill_and_restart(rig: &Rig) -> Result<()> {
    block_on(async {
        let pod = TestPod::start(rig, "survivor", images::SCRIPT, &["forever"]).await?;
        rig.kill()?;
        let away = rig.client()?.version().await;
        ensure!(away.is_err_and(|error| error.is_unavailable()), "a dead containerd answers");
        let lives_on = async || has_process("/script", "forever");
        until("the container is seen to live on", lives_on).await?;
        rig.restart().await?;
        let status = rig.client()?.container_status(&pod.container).await?;
        assert_eq!(status.state().as_str_name(), "CONTAINER_RUNNING");
        pod.remove().await
    })
}

fn has_process(program: &str, argument: &str) -> Result<bool> {
    let all = processes::list()?;
    Ok(all.iter().any(|process| processes::arguments(process.pid) == [program, argument]))
}

fn pause_and_resume(rig: &Rig) -> Result<()> {
    block_on(async {
        let deadlines = Deadlines { request: Duration::from_millis(300) };
        let client = RemoteRuntime::new(&rig.socket().to_string_lossy(), None, deadlines)?;
        client.version().await?;
        rig.pause()?;
        let stuck = client.version().await;
        rig.resume()?;
        let error = stuck.err().context("a paused containerd answers")?;
        ensure!(error.is_timeout(), "not a timeout: {error}");
        rig.client()?.version().await?;
        Ok(())
    })
}

fn broken_configuration(_: &Rig) -> Result<()> {
    block_on(async {
        let rig = Rig::start(RigOptions::default()).await?;
        rig.kill()?;
        fs::write(rig.directory().join("config.toml"), "version = 4\nroot = 'nowhere\n")?;
        let error = rig.restart().await.err().context("started with a broken configuration")?;
        let text = format!("{error:#}");
        ensure!(text.contains("config.toml"), "the error does not say why: {text}");
        rig.stop().await
    })
}

fn debian(_: &Rig) -> Result<()> {
    block_on(async {
        let options = RigOptions { flavour: ContainerdFlavour::Debian, ..RigOptions::default() };
        let rig = Rig::start(options).await?;
        assert!(rig.client()?.version().await?.runtime_version.starts_with("1.6.20"));
        let before = leaks::Snapshot::take(&rig).await?;
        let pod = TestPod::start(&rig, "debian", images::SCRIPT, &["out:hello", "exit:6"]).await?;
        assert_eq!(exit_code(&rig, &pod).await?, 6);
        assert_eq!(output(&pod)?, ["hello"]);
        pod.remove().await?;
        before.compare_until_clean(support::MAX_WAIT).await?;
        rig.stop().await
    })
}

fn stop(_: &Rig) -> Result<()> {
    block_on(async {
        let rig = Rig::start(RigOptions::default()).await?;
        TestPod::start(&rig, "left", images::SCRIPT, &["on-term:ignore", "forever"]).await?;
        let traces = RigTraces::of(&rig);
        assert_eq!(traces.kinds()?, ["process", "mount", "cgroup", "file"]);
        rig.stop().await?;
        assert_eq!(traces.kinds()?, [""; 0]);
        rig.stop().await
    })
}

fn panic_stops_rig(_: &Rig) -> Result<()> {
    let rig = block_on(Rig::start(RigOptions::default()))?;
    let traces = RigTraces::of(&rig);
    let test = std::thread::spawn(move || {
        let pod = block_on(TestPod::start(&rig, "left", images::SCRIPT, &["forever"]));
        let has_pod = pod.is_ok();
        // As a panic, but without its message, which would look like a failure of this test.
        std::panic::resume_unwind(Box::new(has_pod));
    });
    let payload = test.join().err().context("the test was to panic")?;
    ensure!(payload.downcast_ref() == Some(&true), "the pod did not start");
    assert_eq!(traces.kinds()?, [""; 0]);
    Ok(())
}

/// Resources with a rig's name.
struct RigTraces {
    directory: PathBuf,
    group: String,
}

impl RigTraces {
    fn of(rig: &Rig) -> Self {
        Self { directory: rig.directory().to_owned(), group: rig.cgroup_parent() }
    }

    /// The kinds of resources that still exist.
    fn kinds(&self) -> Result<Vec<&'static str>> {
        let name = self.directory.to_string_lossy();
        let is_named = |argument: &OsString| argument.to_string_lossy().contains(&*name);
        let processes = processes::list()?;
        let mounts = mounts::current()?;
        let hierarchies = cgroups::hierarchies(&mounts);
        let groups = hierarchies.iter().map(|hierarchy| hierarchy.directory(self.group.as_ref()));
        let traces = [
            ("process", processes.iter().any(|p| processes::arguments(p.pid).iter().any(is_named))),
            ("mount", mounts::beneath(&mounts, &self.directory).count() > 0),
            ("cgroup", groups.into_iter().any(|group| group.exists())),
            ("file", self.directory.exists()),
        ];
        Ok(traces.into_iter().filter(|(_, is_there)| *is_there).map(|(kind, _)| kind).collect())
    }
}
