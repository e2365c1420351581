//! Queries the status of the runtime: seldom while it is healthy, often while it is not, and very often just after the agent's start,
//! so that the node is ready as soon as its runtime is.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::NodeStatusContext;
use crate::runtime_health::RuntimeUnknown;

/// A runtime counts as down after thirty seconds without a healthy answer, so this is often enough.
const HEALTHY_PERIOD: Duration = Duration::from_secs(10);
const UNHEALTHY_PERIOD: Duration = Duration::from_secs(1);
const STARTUP_PERIOD: Duration = Duration::from_millis(100);
/// How long after the start the short period is used, unless the runtime is healthy before.
const STARTUP: Duration = Duration::from_secs(120);

pub(super) async fn run(context: Arc<NodeStatusContext>) {
    let context = &*context;
    let clock = &context.node.seams.clock;
    let (began, mut is_well, mut was_well) = (clock.mono(), false, false);
    loop {
        let answer = context.node.runtime_health.query(&context.node, !is_well).await;
        let told = |error: &RuntimeUnknown| tracing::debug!(call = "Status", %error, "runtime status not read");
        let answer = answer.inspect_err(told);
        let now = clock.mono();
        is_well = answer.is_ok_and(|health| health.is_ready(now));
        was_well |= is_well;
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
