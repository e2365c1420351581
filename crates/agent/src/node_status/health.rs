//! Queries the status of the runtime: seldom while it is healthy, often while it is not, and very often just after the agent's start,
//! so that the node is ready as soon as its runtime is.

use std::sync::Arc;
use std::time::Duration;

use oarsman_core::node::runtime::Health;
use oarsman_cri::CriError;
use tokio::time::{sleep, timeout};

use super::Office;

/// A runtime counts as down after thirty seconds without a healthy answer, so this is often enough.
const WELL: Duration = Duration::from_secs(10);
const UNWELL: Duration = Duration::from_secs(1);
const AT_THE_BEGINNING: Duration = Duration::from_millis(100);
/// How long after the start the short period is used, unless the runtime is healthy before.
const BEGINNING: Duration = Duration::from_secs(120);

/// The deadline of one query.
const DEADLINE: Duration = Duration::from_secs(10);

pub(super) async fn follow(office: Arc<Office>) {
    let office = &*office;
    let clock = &office.node.seams.clock;
    let (began, mut is_well, mut was_well) = (clock.mono(), false, false);
    loop {
        let answer = asked(office, !is_well).await;
        let now = clock.mono();
        is_well = answer.as_ref().is_some_and(|health| health.is_well(now));
        was_well |= is_well;
        if let Some(health) = answer {
            office.health.send_if_modified(|known| {
                let is_news = !health.says_the_same_as(known);
                *known = health;
                is_news
            });
        }
        sleep(pause(is_well, was_well, now.since(began))).await;
    }
}

fn pause(is_well: bool, was_well: bool, age: Duration) -> Duration {
    match (is_well, was_well) {
        (true, _) => WELL,
        (false, false) if age < BEGINNING => AT_THE_BEGINNING,
        (false, _) => UNWELL,
    }
}

/// The runtime's health; none when it does not answer. After a failure its version is queried, too: another runtime may have taken its
/// place.
async fn asked(office: &Office, who_it_is: bool) -> Option<Health> {
    let (runtime, book) = (&office.node.seams.runtime, &office.node.book);
    let answers = async {
        let version = if who_it_is { Some(runtime.version().await?) } else { None };
        Ok((version, runtime.status().await?))
    };
    let Ok(answers) = timeout(DEADLINE, answers).await else {
        book.runtime_trouble(&format!("no answer to Status within {DEADLINE:?}"));
        return None;
    };
    book.heard_runtime(&answers);
    let told =
        |error: &CriError| tracing::debug!(call = "Status", %error, "runtime status not read");
    let (version, status) = answers.inspect_err(told).ok()?;
    let mut health = office.health.get();
    version.iter().for_each(|version| health.met(version));
    health.heard(&status, office.node.seams.clock.mono());
    Some(health)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_asked_the_more_often_the_more_is_to_be_gained() {
        let soon = Duration::from_secs(1);
        let rows = [
            ((true, true, soon), WELL),
            ((false, false, soon), AT_THE_BEGINNING),
            ((false, false, BEGINNING), UNWELL),
            ((false, true, soon), UNWELL),
        ];
        for ((is_well, was_well, age), expected) in rows {
            assert_eq!(pause(is_well, was_well, age), expected, "{is_well} {was_well} {age:?}");
        }
    }
}
