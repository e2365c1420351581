//! Events on their way to an agent: some are lost, doubled or delayed.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use oarsman_cri::{EventStream, Result};
use oarsman_cri_types::v1::ContainerEventResponse;
use tokio::time::{Instant, sleep_until};

use crate::faults::{EventDelivery, Faults};

/// The same events with faults.
pub(super) fn with_faults(events: EventStream, faults: Faults) -> EventStream {
    let faulty = FaultyEvents { events, faults, held: BTreeMap::new(), count: 0 };
    stream::unfold(faulty, |mut faulty| async { faulty.next().await.map(|event| (event, faulty)) })
        .boxed()
}

struct FaultyEvents {
    events: EventStream,
    faults: Faults,
    /// Delayed events, by the time of their delivery, in their original order.
    held: BTreeMap<(Instant, u64), ContainerEventResponse>,
    count: u64,
}

impl FaultyEvents {
    /// The next event that arrives; none after the subscription has ended, which also drops delayed events.
    async fn next(&mut self) -> Option<Result<ContainerEventResponse>> {
        loop {
            let due = self.held.keys().next().copied();
            let event = tokio::select! {
                biased;
                () = until(due), if due.is_some() => {
                    return self.held.pop_first().map(|(_, event)| Ok(event));
                }
                event = self.events.next() => match event? {
                    Ok(event) => event,
                    Err(error) => return Some(Err(error)),
                },
            };
            if let Some(event) = self.deliver(event) {
                return Some(Ok(event));
            }
        }
    }

    /// The event, if it is delivered now.
    fn deliver(&mut self, event: ContainerEventResponse) -> Option<ContainerEventResponse> {
        let now = Instant::now();
        self.count += 1;
        match self.faults.next_event() {
            EventDelivery::Delivered => Some(event),
            EventDelivery::Lost => None,
            EventDelivery::Doubled => {
                self.held.insert((now, self.count), event.clone());
                Some(event)
            }
            EventDelivery::Late(delay) => {
                self.held.insert((now + delay, self.count), event);
                None
            }
        }
    }
}

async fn until(due: Option<(Instant, u64)>) {
    if let Some((time, _)) = due {
        sleep_until(time).await;
    }
}
