//! Cases on sandboxes: creation, status, stop, removal.

use anyhow::Result;
use oarsman_cri_types::v1::{
    ContainerState, NamespaceMode, PodSandboxConfig, PodSandboxFilter, PodSandboxState,
};

use super::cases;
use crate::context::assert_gone;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        a_new_sandbox_is_ready_and_has_an_address,
        a_sandbox_is_described_as_it_was_asked_for,
        a_sandbox_on_the_host_network_has_no_address_of_its_own,
        a_stopped_sandbox_stays_and_is_not_ready,
        stopping_a_sandbox_ends_its_containers,
        stopping_and_removing_a_sandbox_may_be_repeated,
        removing_a_ready_sandbox_stops_it_first,
        removing_a_sandbox_removes_its_containers,
        two_sandboxes_have_different_addresses,
    ]
}

async fn a_new_sandbox_is_ready_and_has_an_address(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let status = cx.runtime().pod_sandbox_status(&pod.id).await?;
    assert_eq!(status.state(), PodSandboxState::SandboxReady);
    assert!(status.created_at > 0, "{status:?}");
    let ip = status.network.unwrap_or_default().ip;
    assert!(ip.parse::<std::net::IpAddr>().is_ok(), "{ip:?} is an address");
    Ok(())
}

async fn a_sandbox_is_described_as_it_was_asked_for(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    let status = cx.runtime().pod_sandbox_status(&pod.id).await?;
    assert_eq!(status.id, pod.id);
    assert_eq!(status.metadata, pod.config.metadata);
    assert_eq!(status.labels, pod.config.labels);
    assert_eq!(status.annotations, pod.config.annotations);
    let options = status.linux.and_then(|l| l.namespaces).and_then(|n| n.options);
    let options = options.unwrap_or_default();
    assert_eq!(options.network(), NamespaceMode::Pod);
    assert_eq!(options.pid(), NamespaceMode::Container);
    Ok(())
}

async fn a_sandbox_on_the_host_network_has_no_address_of_its_own(cx: &CaseContext) -> Result<()> {
    let mut config = cx.sandbox_config();
    on_host_network(&mut config);
    let pod = cx.pod_with(config).await?;
    let status = cx.runtime().pod_sandbox_status(&pod.id).await?;
    assert_eq!(status.state(), PodSandboxState::SandboxReady);
    assert_eq!(status.network.unwrap_or_default().ip, "");
    let options = status.linux.and_then(|l| l.namespaces).and_then(|n| n.options);
    assert_eq!(options.unwrap_or_default().network(), NamespaceMode::Node);
    Ok(())
}

fn on_host_network(config: &mut PodSandboxConfig) {
    config.hostname.clear();
    let security = config.linux.as_mut().and_then(|linux| linux.security_context.as_mut());
    if let Some(options) = security.and_then(|security| security.namespace_options.as_mut()) {
        options.set_network(NamespaceMode::Node);
    }
}

async fn a_stopped_sandbox_stays_and_is_not_ready(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    cx.runtime().stop_pod_sandbox(&pod.id).await?;
    let status = cx.runtime().pod_sandbox_status(&pod.id).await?;
    assert_eq!(status.state(), PodSandboxState::SandboxNotready);
    assert_eq!(status.metadata, pod.config.metadata);
    Ok(())
}

async fn stopping_a_sandbox_ends_its_containers(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["forever"]).await?;
    cx.runtime().stop_pod_sandbox(&pod.id).await?;
    assert_eq!(cx.state(&id).await?, ContainerState::ContainerExited);
    Ok(())
}

async fn stopping_and_removing_a_sandbox_may_be_repeated(cx: &CaseContext) -> Result<()> {
    let pod = cx.pod().await?;
    for _ in 0..2 {
        cx.runtime().stop_pod_sandbox(&pod.id).await?;
    }
    for _ in 0..2 {
        cx.runtime().remove_pod_sandbox(&pod.id).await?;
    }
    cx.runtime().stop_pod_sandbox(&pod.id).await?;
    Ok(())
}

async fn removing_a_ready_sandbox_stops_it_first(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["forever"]).await?;
    cx.runtime().remove_pod_sandbox(&pod.id).await?;
    assert_gone(&cx.runtime().container_status(&id).await);
    Ok(())
}

async fn removing_a_sandbox_removes_its_containers(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["exit:0"]).await?;
    cx.until_exited(&id).await?;
    cx.runtime().stop_pod_sandbox(&pod.id).await?;
    cx.runtime().remove_pod_sandbox(&pod.id).await?;
    let filter = PodSandboxFilter { id: pod.id.clone(), ..PodSandboxFilter::default() };
    assert!(cx.runtime().list_pod_sandboxes(Some(filter)).await?.is_empty());
    assert_gone(&cx.runtime().container_status(&id).await);
    Ok(())
}

async fn two_sandboxes_have_different_addresses(cx: &CaseContext) -> Result<()> {
    let mut addresses = Vec::new();
    for pod in [cx.pod().await?, cx.pod().await?] {
        let status = cx.runtime().pod_sandbox_status(&pod.id).await?;
        addresses.push(status.network.unwrap_or_default().ip);
    }
    assert_ne!(addresses[0], addresses[1]);
    Ok(())
}
