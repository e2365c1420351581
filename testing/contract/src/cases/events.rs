//! Cases on container events: hints that something happened to a container, in time and with its pod.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use oarsman_cri::EventStream;
use oarsman_cri_types::v1::{ContainerEventResponse, ContainerEventType};
use tokio::time::{Instant, timeout_at};

use super::cases;
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        events_of_a_container_come_in_order,
        the_event_of_an_exit_has_the_pods_state,
        start_and_end_of_a_sandbox_give_events,
        two_subscribers_both_get_events,
    ]
}

/// The next event of that container or sandbox; events of others are skipped.
async fn next(events: &mut EventStream, id: &str) -> Result<ContainerEventResponse> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let event = timeout_at(deadline, events.next()).await;
        match event.with_context(|| format!("no event about {id} in time"))? {
            Some(event) => {
                let event = event?;
                if event.container_id == id {
                    return Ok(event);
                }
            }
            None => bail!("the events ended"),
        }
    }
}

async fn expect(events: &mut EventStream, id: &str, wanted: &[ContainerEventType]) -> Result<()> {
    for kind in wanted {
        assert_eq!(next(events, id).await?.container_event_type(), *kind);
    }
    Ok(())
}

async fn events_of_a_container_come_in_order(cx: &CaseContext) -> Result<()> {
    let mut events = cx.runtime().container_events().await?;
    let (_, id) = cx.run(&["forever"]).await?;
    cx.runtime().stop_container(&id, Duration::ZERO).await?;
    cx.runtime().remove_container(&id).await?;
    let life = [
        ContainerEventType::ContainerCreatedEvent,
        ContainerEventType::ContainerStartedEvent,
        ContainerEventType::ContainerStoppedEvent,
        ContainerEventType::ContainerDeletedEvent,
    ];
    expect(&mut events, &id, &life).await
}

async fn the_event_of_an_exit_has_the_pods_state(cx: &CaseContext) -> Result<()> {
    let mut events = cx.runtime().container_events().await?;
    let (pod, id) = cx.run(&["sleep:200ms", "exit:9"]).await?;
    let stopped = loop {
        let event = next(&mut events, &id).await?;
        if event.container_event_type() == ContainerEventType::ContainerStoppedEvent {
            break event;
        }
    };
    let sandbox = stopped.pod_sandbox_status.unwrap_or_default();
    assert_eq!(sandbox.id, pod.id);
    assert_eq!(sandbox.metadata, pod.config.metadata);
    let status = stopped.containers_statuses.iter().find(|status| status.id == id);
    assert_eq!(status.map(|status| status.exit_code), Some(9));
    Ok(())
}

async fn start_and_end_of_a_sandbox_give_events(cx: &CaseContext) -> Result<()> {
    let mut events = cx.runtime().container_events().await?;
    let pod = cx.pod().await?;
    cx.runtime().stop_pod_sandbox(&pod.id).await?;
    cx.runtime().remove_pod_sandbox(&pod.id).await?;
    let life = [
        ContainerEventType::ContainerCreatedEvent,
        ContainerEventType::ContainerStartedEvent,
        ContainerEventType::ContainerStoppedEvent,
        ContainerEventType::ContainerDeletedEvent,
    ];
    expect(&mut events, &pod.id, &life).await
}

async fn two_subscribers_both_get_events(cx: &CaseContext) -> Result<()> {
    let mut first = cx.runtime().container_events().await?;
    let mut second = cx.runtime().container_events().await?;
    let pod = cx.pod().await?;
    for events in [&mut first, &mut second] {
        expect(events, &pod.id, &[ContainerEventType::ContainerCreatedEvent]).await?;
    }
    Ok(())
}
