//! CDI devices in containers.

use std::fs;

use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{
    CdiDevice, ContainerConfig, ContainerMetadata, CreateContainerRequest, ImageSpec,
    PodSandboxConfig, RunPodSandboxRequest,
};
use oarsman_rig::images;
use oarsman_runtime::EmbeddedRuntime;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::harness::Node;
use crate::oci_runtime::HANDLER;
use crate::reconnect::{pod_config, trial, until_exited};

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Vec<Trial> {
    vec![
        trial(node, tokio, "cdi", "a_device_brings_what_its_file_says", device),
        trial(node, tokio, "cdi", "hooks_of_a_device_are_run_by_an_oci_runtime_alone", hooks),
    ]
}

async fn pod(runtime: &EmbeddedRuntime, handler: &str) -> Result<String> {
    let metadata = pod_config().metadata.map(|it| oarsman_cri_types::v1::PodSandboxMetadata {
        name: format!("pod-{handler}"),
        uid: format!("uid-{handler}"),
        ..it
    });
    let config = Some(PodSandboxConfig { metadata, ..pod_config() });
    let runtime_handler = handler.to_owned();
    Ok(runtime.run_pod_sandbox(RunPodSandboxRequest { config, runtime_handler }).await?)
}

/// The exit code of a script in a container with these devices.
async fn run(runtime: &EmbeddedRuntime, pod: &str, devices: &[&str], script: &str) -> Result<i32> {
    let config = ContainerConfig {
        metadata: Some(ContainerMetadata { name: "main".to_owned(), attempt: 0 }),
        image: Some(ImageSpec { image: images::BUSYBOX.to_owned(), ..ImageSpec::default() }),
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        cdi_devices: devices.iter().map(|name| CdiDevice { name: (*name).to_owned() }).collect(),
        ..ContainerConfig::default()
    };
    let request = CreateContainerRequest {
        pod_sandbox_id: pod.to_owned(),
        config: Some(config),
        sandbox_config: None,
    };
    let id = runtime.create_container(request).await?;
    runtime.start_container(&id).await?;
    let exit = until_exited(runtime, &id).await?.exit_code;
    runtime.remove_container(&id).await?;
    Ok(exit)
}

/// Writes a file of a vendor for the runtime of that name.
fn write_spec(node: &Node, name: &str, edits: &Value) -> Result<()> {
    let directory = node.cdi_directory(name);
    fs::create_dir_all(&directory)?;
    let spec = json!({
        "cdiVersion": "0.6.0",
        "kind": "vendor.com/thing",
        "containerEdits": { "env": ["VENDOR=yes"] },
        "devices": [{ "name": "one", "containerEdits": edits }],
    });
    Ok(fs::write(directory.join("thing.json"), spec.to_string())?)
}

const DEVICE: &str = "vendor.com/thing=one";

async fn device(node: Node, name: &'static str) -> Result<()> {
    let library = node.path().join(format!("{name}-library"));
    fs::write(&library, "from the node")?;
    let edits = json!({
        "env": ["THING=one"],
        "deviceNodes": [{ "path": "/dev/thing", "hostPath": "/dev/null" }],
        "mounts": [{ "hostPath": library, "containerPath": "/vendor/library", "options": ["ro"] }],
        "additionalGids": [4321],
    });
    write_spec(&node, name, &edits)?;
    let runtime = node.with_images_and_handler(name).await?;
    for handler in ["", HANDLER] {
        let pod = pod(&runtime, handler).await?;
        let checks = [
            "[ \"$VENDOR$THING\" = yesone ] || exit 11",
            "[ -c /dev/thing ] && echo x > /dev/thing || exit 12",
            "[ \"$(cat /vendor/library)\" = 'from the node' ] || exit 13",
            "touch /vendor/library 2>/dev/null && exit 14",
            "id -G | grep -qw 4321 || exit 15",
        ];
        let script = checks.join("; ");
        let exit = run(&runtime, &pod, &[DEVICE], &script).await?;
        ensure!(exit == 0, "handler {handler:?}: {exit}");
        let without = run(&runtime, &pod, &[], "[ -e /dev/thing ] && exit 1; exit 0").await?;
        ensure!(without == 0, "a container has the device without asking");
        let refused = run(&runtime, &pod, &["vendor.com/thing=two"], "true").await;
        let refused = refused.unwrap_err().to_string();
        ensure!(refused.contains("has the CDI device vendor.com/thing=two"), "{refused}");
        runtime.remove_pod_sandbox(&pod).await?;
    }
    node.close_later(runtime);
    Ok(())
}

async fn hooks(node: Node, name: &'static str) -> Result<()> {
    let mark = node.path().join(format!("{name}-mark"));
    let edits = json!({
        "hooks": [{ "hookName": "createRuntime", "path": "/bin/touch", "args": ["touch", mark] }],
    });
    write_spec(&node, name, &edits)?;
    let runtime = node.with_images_and_handler(name).await?;
    let ours = pod(&runtime, "").await?;
    let refused = run(&runtime, &ours, &[DEVICE], "true").await.unwrap_err().to_string();
    ensure!(refused.contains("want hooks") && refused.contains("--runtime-handler"), "{refused}");
    ensure!(!mark.exists(), "the hook was run");
    let other = pod(&runtime, HANDLER).await?;
    ensure!(run(&runtime, &other, &[DEVICE], "true").await? == 0);
    ensure!(mark.exists(), "the hook was not run");
    for pod in [ours, other] {
        runtime.remove_pod_sandbox(&pod).await?;
    }
    node.close_later(runtime);
    Ok(())
}
