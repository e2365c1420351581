//! Queries the status of the runtime: seldom while it is healthy, often while it is not, and very often just after the agent's start,
//! so that the node is ready as soon as its runtime is.

use std::sync::Arc;
use std::time::Duration;

use oarsman_core::node::runtime::RuntimeHealth;
use oarsman_cri::CriError;
use tokio::time::{sleep, timeout};

use super::NodeStatusContext;

/// A runtime counts as down after thirty seconds without a healthy answer, so this is often enough.
const HEALTHY_PERIOD: Duration = Duration::from_secs(10);
const UNHEALTHY_PERIOD: Duration = Duration::from_secs(1);
const STARTUP_PERIOD: Duration = Duration::from_millis(100);
/// How long after the start the short period is used, unless the runtime is healthy before.
const STARTUP: Duration = Duration::from_secs(120);

/// The deadline of one query.
const DEADLINE: Duration = Duration::from_secs(10);

pub(super) async fn run(context: Arc<NodeStatusContext>) {
    let context = &*context;
    let clock = &context.node.seams.clock;
    let (began, mut is_well, mut was_well) = (clock.mono(), false, false);
    loop {
        let answer = query_runtime(context, !is_well).await;
        let now = clock.mono();
        is_well = answer.as_ref().is_some_and(|health| health.is_ready(now));
        was_well |= is_well;
        if let Some(health) = answer {
            context.health.send_if_modified(|known| {
                let is_news = !health.equals_except_time(known);
                *known = health;
                is_news
            });
        }
        sleep(next_delay(is_well, was_well, now.since(began))).await;
    }
}

fn next_delay(is_well: bool, was_well: bool, age: Duration) -> Duration {
    match (is_well, was_well) {
        (true, _) => HEALTHY_PERIOD,
        (false, false) if age < STARTUP => STARTUP_PERIOD,
        (false, _) => UNHEALTHY_PERIOD,
    }
}

/// The runtime's health; none when it does not answer. After a failure its version is queried, too: another runtime may have taken its
/// place.
async fn query_runtime(context: &NodeStatusContext, with_version: bool) -> Option<RuntimeHealth> {
    let (runtime, report_store) = (&context.node.seams.runtime, &context.node.report_store);
    let answers = async {
        let version = if with_version { Some(runtime.version().await?) } else { None };
        Ok((version, runtime.status().await?))
    };
    let Ok(answers) = timeout(DEADLINE, answers).await else {
        report_store.set_runtime_unreachable(&format!("no answer to Status within {DEADLINE:?}"));
        return None;
    };
    report_store.record_runtime_response(&answers);
    let told =
        |error: &CriError| tracing::debug!(call = "Status", %error, "runtime status not read");
    let (version, status) = answers.inspect_err(told).ok()?;
    let mut health = context.health.get();
    version.iter().for_each(|version| health.set_version(version));
    health.set_status(&status, context.node.seams.clock.mono());
    Some(health)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unhealthy_runtime_is_queried_more_often() {
        let soon = Duration::from_secs(1);
        let rows = [
            ((true, true, soon), HEALTHY_PERIOD),
            ((false, false, soon), STARTUP_PERIOD),
            ((false, false, STARTUP), UNHEALTHY_PERIOD),
            ((false, true, soon), UNHEALTHY_PERIOD),
        ];
        for ((is_well, was_well, age), expected) in rows {
            assert_eq!(
                next_delay(is_well, was_well, age),
                expected,
                "{is_well} {was_well} {age:?}"
            );
        }
    }
}
