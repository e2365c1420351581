//! Cases on lists and their filters.

use std::collections::BTreeMap;

use anyhow::Result;
use oarsman_cri_types::v1::{
    ContainerFilter, ContainerState, ContainerStateValue, PodSandboxFilter, PodSandboxState,
    PodSandboxStateValue,
};

use super::cases;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        sandboxes_are_listed_by_id_state_and_label,
        containers_are_listed_by_id_state_sandbox_and_label,
        filters_are_joined_by_and,
        a_listed_container_says_what_its_status_says,
        a_filter_that_nothing_meets_gives_nothing,
    ]
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

async fn sandboxes_are_listed_by_id_state_and_label(cx: &CaseContext) -> Result<()> {
    let mut config = cx.sandbox_config();
    config.labels.insert("who".to_owned(), "first".to_owned());
    let first = cx.pod_with(config).await?;
    let second = cx.pod().await?;
    cx.runtime().stop_pod_sandbox(&second.id).await?;
    let list = async |filter| -> Result<Vec<String>> {
        let listed = cx.runtime().list_pod_sandboxes(Some(filter)).await?;
        Ok(listed.into_iter().map(|sandbox| sandbox.id).collect())
    };
    let by_id = PodSandboxFilter { id: first.id.clone(), ..Default::default() };
    assert_eq!(list(by_id).await?, [first.id.as_str()]);
    let by_label =
        PodSandboxFilter { label_selector: labels(&[("who", "first")]), ..Default::default() };
    assert_eq!(list(by_label).await?, [first.id.as_str()]);
    let state = PodSandboxStateValue { state: PodSandboxState::SandboxNotready.into() };
    let label_selector = second.config.labels.clone();
    let by_state = PodSandboxFilter { state: Some(state), label_selector, ..Default::default() };
    assert_eq!(list(by_state).await?, [second.id.as_str()]);
    Ok(())
}

async fn containers_are_listed_by_id_state_sandbox_and_label(cx: &CaseContext) -> Result<()> {
    let (pod, running) = cx.run(&["forever"]).await?;
    let ended = cx.start(&pod, cx.script("ended", &["exit:0"])).await?;
    cx.until_exited(&ended).await?;
    let pod_sandbox_id = pod.id.clone();
    let state = |state: ContainerState| Some(ContainerStateValue { state: state.into() });
    for (filter, wanted) in [
        (ContainerFilter { id: running.clone(), ..Default::default() }, vec![&running]),
        (
            ContainerFilter { pod_sandbox_id: pod_sandbox_id.clone(), ..Default::default() },
            vec![&running, &ended],
        ),
        (
            ContainerFilter {
                pod_sandbox_id: pod_sandbox_id.clone(),
                state: state(ContainerState::ContainerExited),
                ..Default::default()
            },
            vec![&ended],
        ),
        (
            ContainerFilter {
                pod_sandbox_id,
                label_selector: labels(&[("container", "main")]),
                ..Default::default()
            },
            vec![&running],
        ),
    ] {
        let listed = cx.runtime().list_containers(Some(filter.clone())).await?;
        let mut ids: Vec<&String> = listed.iter().map(|container| &container.id).collect();
        let mut wanted = wanted;
        ids.sort();
        wanted.sort();
        assert_eq!(ids, wanted, "{filter:?}");
    }
    Ok(())
}

async fn filters_are_joined_by_and(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["forever"]).await?;
    let other = cx.pod().await?;
    let filter = |sandbox: &str| ContainerFilter {
        id: id.clone(),
        pod_sandbox_id: sandbox.to_owned(),
        ..Default::default()
    };
    assert_eq!(cx.runtime().list_containers(Some(filter(&pod.id))).await?.len(), 1);
    assert_eq!(cx.runtime().list_containers(Some(filter(&other.id))).await?.len(), 0);
    Ok(())
}

async fn a_listed_container_says_what_its_status_says(cx: &CaseContext) -> Result<()> {
    let (pod, id) = cx.run(&["forever"]).await?;
    let filter = ContainerFilter { id: id.clone(), ..Default::default() };
    let listed = cx.runtime().list_containers(Some(filter)).await?;
    let status = cx.runtime().container_status(&id).await?;
    let [listed] = listed.as_slice() else { anyhow::bail!("one container, not {listed:?}") };
    assert_eq!(listed.pod_sandbox_id, pod.id);
    assert_eq!(listed.metadata, status.metadata);
    assert_eq!(listed.state, status.state);
    assert_eq!(listed.created_at, status.created_at);
    assert_eq!(listed.labels, status.labels);
    assert_eq!(listed.annotations, status.annotations);
    assert_eq!(listed.image_ref, status.image_ref);
    Ok(())
}

async fn a_filter_that_nothing_meets_gives_nothing(cx: &CaseContext) -> Result<()> {
    cx.pod().await?;
    let nobody = labels(&[("case", "nobody's")]);
    let pods = PodSandboxFilter { label_selector: nobody.clone(), ..Default::default() };
    assert!(cx.runtime().list_pod_sandboxes(Some(pods)).await?.is_empty());
    let containers = ContainerFilter { label_selector: nobody, ..Default::default() };
    assert!(cx.runtime().list_containers(Some(containers)).await?.is_empty());
    Ok(())
}
