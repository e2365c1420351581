//! Subscribing to container events.

use std::future::Future;
use std::time::Duration;

use futures::{StreamExt, TryFutureExt, TryStreamExt};
use oarsman_cri_types::v1::ContainerEventResponse;
use tokio::time::timeout;

use super::pending_call::PendingCall;
use crate::{EventStream, Result};

/// How long a runtime has to refuse a subscription. Go servers tell of success only with the
/// first event, so a longer silence must count as a yes.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

type Incoming = tonic::Streaming<ContainerEventResponse>;

/// Starts the subscription, and returns its events once it is accepted or not refused in time.
pub(super) async fn subscribe(
    attempt: PendingCall<'static>,
    opening: impl Future<Output = Result<Incoming>> + Send + 'static,
) -> Result<EventStream> {
    let mut opening = Box::pin(opening.map_ok(move |incoming| events(attempt, incoming)));
    match timeout(REFUSAL_TIME, &mut opening).await {
        Ok(opened) => opened,
        Err(_) => Ok(opening.try_flatten_stream().boxed()),
    }
}

fn events(attempt: PendingCall<'static>, incoming: Incoming) -> EventStream {
    incoming.map_err(move |status| attempt.failed(&status)).boxed()
}
