//! The notifications that an agent sends to systemd: ready, watchdog, stopping.

use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::inspect::{always, eventually};
use oarsman_e2e::notify_socket::{NotifySocket, is_ready_and_well};
use oarsman_e2e::proxy::{CallFilter, RuleAction};
use oarsman_e2e::scenario::ScenarioContext;

use super::starts::MAX_WAIT;

pub(super) async fn systemd_is_notified_of_the_agents_state(cx: &ScenarioContext) -> Result<()> {
    let path = cx.scratch().join("notify");
    let mut heard = NotifySocket::bind(&path)?;
    let proxy = cx.proxy().await?;
    let held = proxy.add_rule(CallFilter::all().named("Version"), RuleAction::Hold);
    let setup = cx.setup()?.through(&proxy);
    let setup = setup.env("NOTIFY_SOCKET", &path.display().to_string());
    let agent = cx.start(setup.env("WATCHDOG_USEC", "400000"))?;

    held.wait_until_held(1, MAX_WAIT).await?;
    always(
        Duration::from_millis(500),
        "nothing is told before the runtime has answered",
        async || Ok(heard.so_far()),
        Vec::is_empty,
    )
    .await?;

    drop(held);
    let words = async || Ok(heard.so_far());
    eventually(MAX_WAIT, "it is ready and well", words, |words| is_ready_and_well(words)).await?;

    let status = agent.terminate(MAX_WAIT).await?;
    ensure!(status.success(), "{status}");
    let words = heard.so_far();
    ensure!(words.last().is_some_and(|word| word == "STOPPING=1"), "{words:?}");
    ensure!(words.iter().filter(|word| *word == "STOPPING=1").count() == 1, "{words:?}");
    Ok(())
}
