//! The events of containers, as a stream for each subscriber.

use futures::StreamExt;
use futures::stream;
use oarsman_cri::{CriError, ErrorCode, EventStream};
use oarsman_cri_types::v1::ContainerEventResponse;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// Every event from now on, in order. A subscriber that is too far behind gets an error and the end of its stream in the place of the rest: it has
/// to subscribe again and read everything anew.
pub(crate) fn stream(events: Receiver<ContainerEventResponse>) -> EventStream {
    let next = |events: Option<Receiver<ContainerEventResponse>>| async {
        let mut events = events?;
        match events.recv().await {
            Ok(event) => Some((Ok(event), Some(events))),
            Err(RecvError::Lagged(count)) => Some((Err(too_far_behind(count)), None)),
            Err(RecvError::Closed) => None,
        }
    };
    stream::unfold(Some(events), next).boxed()
}

fn too_far_behind(count: u64) -> CriError {
    let message = format!(
        "this subscriber was too far behind, and {count} events or more are lost: subscribe again, and list"
    );
    CriError::new("GetContainerEvents", ErrorCode::OutOfRange, message)
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;

    fn event(number: u32) -> ContainerEventResponse {
        ContainerEventResponse { container_id: number.to_string(), ..Default::default() }
    }

    #[tokio::test]
    async fn a_subscriber_that_reads_gets_every_event_in_order() {
        let sender = broadcast::channel(4).0;
        let mut events = stream(sender.subscribe());
        for number in 0..20 {
            sender.send(event(number)).unwrap();
            let got = events.next().await.unwrap().unwrap();
            assert_eq!(got.container_id, number.to_string());
        }
        drop(sender);
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn a_subscriber_that_is_behind_is_ended_with_an_error_and_skips_nothing() {
        let sender = broadcast::channel(4).0;
        let mut events = stream(sender.subscribe());
        for number in 0..5 {
            sender.send(event(number)).unwrap();
        }
        let error = events.next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), ErrorCode::OutOfRange);
        assert!(error.message().contains("subscribe again"), "{error}");
        assert!(events.next().await.is_none(), "no event comes after a gap");
        assert_eq!(sender.receiver_count(), 0, "it takes no more");
    }
}
