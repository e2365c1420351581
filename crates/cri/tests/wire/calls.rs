//! Makes every call of a runtime once, with every kind of field in the requests.

use std::time::Duration;

use oarsman_cri::{InfoTarget, Runtime};
use oarsman_cri_types::v1 as cri;

fn text(text: &str) -> String {
    text.to_owned()
}

pub(crate) fn image(reference: &str) -> cri::ImageSpec {
    cri::ImageSpec { image: text(reference), ..Default::default() }
}

fn resources() -> Option<cri::LinuxContainerResources> {
    Some(cri::LinuxContainerResources {
        cpu_shares: 512,
        unified: [(text("memory.high"), text("1"))].into(),
        ..Default::default()
    })
}

fn sandbox_config() -> Option<cri::PodSandboxConfig> {
    Some(cri::PodSandboxConfig {
        metadata: Some(cri::PodSandboxMetadata {
            name: text("web"),
            namespace: text("default"),
            ..Default::default()
        }),
        labels: [(text("app"), text("web"))].into(),
        ..Default::default()
    })
}

pub(crate) fn run_sandbox() -> cri::RunPodSandboxRequest {
    cri::RunPodSandboxRequest { config: sandbox_config(), runtime_handler: text("kata") }
}

pub(crate) fn create_container() -> cri::CreateContainerRequest {
    cri::CreateContainerRequest {
        pod_sandbox_id: text("s1"),
        config: Some(cri::ContainerConfig {
            metadata: Some(cri::ContainerMetadata { name: text("main"), attempt: 2 }),
            stop_signal: cri::Signal::Sigusr1.into(),
            ..Default::default()
        }),
        sandbox_config: sandbox_config(),
    }
}

pub(crate) fn exec_sync(timeout: i64) -> cri::ExecSyncRequest {
    cri::ExecSyncRequest { container_id: text("c1"), cmd: vec![text("ls"), text("-l")], timeout }
}

pub(crate) fn pull(reference: &str) -> cri::PullImageRequest {
    cri::PullImageRequest { image: Some(image(reference)), ..Default::default() }
}

/// Makes every call and returns the outcomes in readable form, without those of events, which
/// have no end.
pub(crate) async fn call_everything(runtime: &dyn Runtime) -> Vec<String> {
    let mut outcomes = Vec::new();
    macro_rules! ask {
        ($($call:tt)*) => {
            outcomes.push(format!("{:?}", runtime.$($call)*.await))
        };
    }
    ask!(version());
    ask!(status());
    ask!(runtime_config());
    ask!(update_runtime_config(cri::RuntimeConfig {
        network_config: Some(cri::NetworkConfig { pod_cidr: text("10.1.0.0/24") })
    }));
    ask!(run_pod_sandbox(run_sandbox()));
    ask!(stop_pod_sandbox("s1"));
    ask!(remove_pod_sandbox("s1"));
    ask!(pod_sandbox_status("s1"));
    ask!(list_pod_sandboxes(Some(cri::PodSandboxFilter { id: text("s1"), ..Default::default() })));
    ask!(update_pod_sandbox_resources(cri::UpdatePodSandboxResourcesRequest {
        pod_sandbox_id: text("s1"),
        overhead: resources(),
        resources: None,
    }));
    ask!(create_container(create_container()));
    ask!(start_container("c1"));
    ask!(stop_container("c1", Duration::from_secs(30)));
    ask!(remove_container("c1"));
    ask!(list_containers(Some(cri::ContainerFilter {
        pod_sandbox_id: text("s1"),
        ..Default::default()
    })));
    ask!(container_status("c1"));
    ask!(update_container_resources(cri::UpdateContainerResourcesRequest {
        container_id: text("c1"),
        linux: resources(),
        ..Default::default()
    }));
    ask!(reopen_container_log("c1"));
    ask!(checkpoint_container(cri::CheckpointContainerRequest {
        container_id: text("c1"),
        location: text("/c.tar"),
        timeout: 7,
    }));
    ask!(exec_sync(exec_sync(5)));
    ask!(exec(cri::ExecRequest { container_id: text("c1"), tty: true, ..Default::default() }));
    ask!(attach(cri::AttachRequest {
        container_id: text("c1"),
        stdout: true,
        ..Default::default()
    }));
    ask!(port_forward(cri::PortForwardRequest { pod_sandbox_id: text("s1"), port: vec![80, 443] }));
    ask!(container_stats("c1"));
    ask!(list_container_stats(Some(cri::ContainerStatsFilter {
        pod_sandbox_id: text("s1"),
        ..Default::default()
    })));
    ask!(pod_sandbox_stats("s1"));
    ask!(list_pod_sandbox_stats(Some(cri::PodSandboxStatsFilter {
        id: text("s1"),
        ..Default::default()
    })));
    ask!(list_metric_descriptors());
    ask!(list_pod_sandbox_metrics());
    ask!(list_images(Some(cri::ImageFilter { image: Some(image("a:1")) })));
    ask!(image_status(image("a:1")));
    ask!(image_status(image("absent")));
    ask!(pull_image(pull("a:1")));
    ask!(remove_image(image("a:1")));
    ask!(image_fs_info());
    outcomes.push(format!("{:?}", runtime.container_events().await.map(drop)));
    outcomes
}

/// Asks for details about every kind of object.
pub(crate) async fn inspect(runtime: &dyn Runtime) -> Vec<String> {
    let mut outcomes = Vec::new();
    for about in [
        InfoTarget::Runtime,
        InfoTarget::Sandbox("s1"),
        InfoTarget::Container("c1"),
        InfoTarget::Image("a:1"),
    ] {
        outcomes.push(format!("{:?}", runtime.info(about).await));
    }
    outcomes
}
