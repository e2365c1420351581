//! Container events over the socket.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::ContainerEventType;
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::scenario::ScenarioContext;
use tokio::sync::watch;

use super::MAX_WAIT;
use super::lives::lasting;

const PODS: usize = 20;
/// The life of a container and of a sandbox.
const LIFE: [ContainerEventType; 4] = [
    ContainerEventType::ContainerCreatedEvent,
    ContainerEventType::ContainerStartedEvent,
    ContainerEventType::ContainerStoppedEvent,
    ContainerEventType::ContainerDeletedEvent,
];

type Seen = BTreeMap<String, Vec<ContainerEventType>>;

fn has_ended(seen: &Seen) -> bool {
    // A container and a sandbox of each pod.
    seen.len() == 2 * PODS
        && seen.values().all(|kinds| kinds.contains(&ContainerEventType::ContainerDeletedEvent))
}

pub(super) async fn a_client_that_reads_gets_every_event_of_every_container_once(
    cx: &ScenarioContext,
) -> Result<()> {
    let mut events = cx.rig().client()?.container_events().await?;
    let (seen, mut now) = watch::channel(Seen::new());
    let reading = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let event = event?;
            let kind = event.container_event_type();
            seen.send_modify(|seen| seen.entry(event.container_id).or_default().push(kind));
        }
        anyhow::Ok(())
    });
    let agent = cx.agent()?;
    for number in 0..PODS {
        let name = format!("p{number}");
        agent.apply(&name, &lasting(&name, &["forever"]))?;
    }
    let look = async || cx.inspector().pods().await;
    let run = |pods: &Vec<_>| {
        let runs = |pod: &&oarsman_e2e::inspect::ObservedPod| pod.runs("main");
        pods.iter().filter(runs).count() == PODS
    };
    eventually(MAX_WAIT, "all run", look, run).await?;
    agent.manifests().clear()?;
    let ended = tokio::time::timeout(MAX_WAIT, now.wait_for(has_ended)).await;
    let seen = ended.with_context(|| "not all events have come")??.clone();
    for (id, kinds) in &seen {
        ensure!(kinds == &LIFE, "{id}: {kinds:?}");
    }
    reading.abort();
    Ok(())
}
