//! Equal events are counted, many similar ones are aggregated into one, and the events of a pod are rate-limited, as client-go does.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::lru_map::LruMap;
use super::{EventKind, PodEvent};
use crate::ids::PodUid;
use crate::rate::TokenBucket;
use crate::time::{Mono, Now};

#[cfg(test)]
mod tests;

/// So many pods, kinds of events and events are remembered.
const REMEMBERED: usize = 4096;
/// From so many different messages on, events alike are told as one.
const ALIKE: usize = 10;
/// Events that are further apart than this are not put together.
const TOGETHER: Duration = Duration::from_secs(10 * 60);
/// The burst of events of one pod,
const AT_ONCE: u32 = 25;
/// and the time after which one more is allowed.
const ONE_EACH: Duration = Duration::from_secs(5 * 60);
/// The API allows no longer name.
const LONGEST_NAME: usize = 253;

/// What has been told, as far as it matters for what comes next.
#[derive(Clone, Debug)]
pub struct Correlator {
    alike: LruMap<AggregateKey, AggregateRecord>,
    records: LruMap<CorrelatorKey, EventRecord>,
    buckets: LruMap<PodUid, TokenBucket>,
    /// The number in the last name.
    number: u64,
}

/// Events that differ in nothing but what they say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AggregateKey {
    pod: PodUid,
    kind: EventKind,
    reason: String,
}

#[derive(Clone, Debug)]
struct AggregateRecord {
    messages: BTreeSet<String>,
    last: Mono,
}

/// Events that differ in nothing but when.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CorrelatorKey {
    alike: AggregateKey,
    field_path: Option<String>,
    /// None for all that were put together.
    message: Option<String>,
}

/// An event as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRecord {
    /// What its object is called.
    pub name: String,
    /// The message, which differs between the events of one aggregate.
    pub message: String,
    /// How often it happened.
    pub count: i32,
    /// When it happened first.
    pub first: Timestamp,
    /// When it happened last.
    pub last: Timestamp,
}

impl Default for Correlator {
    fn default() -> Self {
        Self::new(REMEMBERED)
    }
}

impl Correlator {
    fn new(most: usize) -> Self {
        let (alike, records) = (LruMap::new(most), LruMap::new(most));
        Self { alike, records, buckets: LruMap::new(most), number: 0 }
    }

    /// What to tell of something that happened to a pod of that name and UID: a new event when its count is one, and otherwise the
    /// change to one that was told. None when the pod has said too much.
    pub fn correlate(
        &mut self,
        pod: (&str, &PodUid),
        event: &PodEvent,
        now: Now,
    ) -> Option<EventRecord> {
        let (name, uid) = pod;
        let alike =
            AggregateKey { pod: uid.clone(), kind: event.kind, reason: event.reason.to_string() };
        let many = self.is_aggregated(&alike, &event.message, now.mono);
        let message = if many {
            format!("(combined from similar events): {}", event.message)
        } else {
            event.message.clone()
        };
        let own = (!many).then(|| event.message.clone());
        let same = CorrelatorKey {
            alike,
            field_path: event.field_path.clone().filter(|_| !many),
            message: own,
        };
        // A name is consumed even if the event already has one; gaps do not matter.
        let name = self.name(name, now.wall);
        let new = || EventRecord {
            name,
            message: String::new(),
            count: 0,
            first: now.wall,
            last: now.wall,
        };
        let record = self.records.entry(same, new);
        record.count = record.count.saturating_add(1);
        (record.message, record.last) = (message, now.wall);
        let records = record.clone();
        let all = || TokenBucket::new(AT_ONCE, ONE_EACH);
        let allowed = self.buckets.entry(uid.clone(), all).take(now.mono);
        allowed.ok().map(|()| records)
    }

    /// Whether so many events alike have come that they are told as one.
    fn is_aggregated(&mut self, alike: &AggregateKey, message: &str, now: Mono) -> bool {
        let new = || AggregateRecord { messages: BTreeSet::new(), last: now };
        let similar = self.alike.entry(alike.clone(), new);
        if now.since(similar.last) > TOGETHER {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message.to_owned());
        let many = similar.messages.len() >= ALIKE;
        if many {
            // The number of them is remembered, not all that was ever said.
            similar.messages.pop_first();
        }
        many
    }

    /// A name that no event had before, made of the pod's and the time.
    fn name(&mut self, pod: &str, now: Timestamp) -> String {
        let time = u64::try_from(now.as_nanosecond()).unwrap_or_default();
        self.number = time.max(self.number.saturating_add(1));
        let number = format!(".{:x}", self.number);
        let room = LONGEST_NAME.saturating_sub(number.len());
        let pod = pod.get(..room.min(pod.len())).unwrap_or_default().trim_end_matches(['-', '.']);
        format!("{pod}{number}")
    }
}
