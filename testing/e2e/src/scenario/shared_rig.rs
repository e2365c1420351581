//! The rig that the scenarios of one flavour share, started when the first needs it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use futures::FutureExt;
use oarsman_rig::leaks::Snapshot;
use oarsman_rig::{ContainerdFlavour, Rig};
use tokio::sync::Mutex;

use super::{Scenario, ScenarioContext, obstacles, rig_options};

/// No scenario takes this long on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(240);
/// Nor does one that is long.
const LONG_DEADLINE: Duration = Duration::from_secs(1200);

pub(super) struct SharedRig {
    flavour: ContainerdFlavour,
    rig: Mutex<Option<Arc<Rig>>>,
}

impl SharedRig {
    pub(super) fn new(flavour: ContainerdFlavour) -> Self {
        Self { flavour, rig: Mutex::default() }
    }

    /// Why a scenario cannot be played on it, if so.
    pub(super) fn obstacle(&self, scenario: &str) -> Option<String> {
        obstacles::obstacle(self.flavour, scenario)
    }

    pub(super) fn name(&self) -> &'static str {
        match self.flavour {
            ContainerdFlavour::Built => "containerd",
            ContainerdFlavour::Debian => "debian",
            ContainerdFlavour::OarsmanCri => "cri",
            ContainerdFlavour::Absent => "embedded",
        }
    }

    /// Runs a scenario on the rig, and discards the rig if it failed.
    pub(super) async fn run(&self, scenario: Scenario) -> Result<()> {
        let rig = self.open().await?;
        let before = Snapshot::take(&rig).await?;
        let cx = Arc::new(ScenarioContext::new(&rig)?);
        let outcome = run_scenario(scenario, &cx).await;
        let outcome = match outcome {
            Ok(()) => cx.clean_up(&before).await.context("after the scenario"),
            failed => failed,
        };
        // The error chain in one line, then the report; a backtrace would not help.
        let outcome = outcome.map_err(|error| anyhow!("{error:#}\n{}", cx.report()));
        cx.end();
        if outcome.is_err() {
            self.close().await?;
        }
        outcome
    }

    async fn open(&self) -> Result<Arc<Rig>> {
        let mut rig = self.rig.lock().await;
        if let Some(rig) = rig.as_ref() {
            return Ok(Arc::clone(rig));
        }
        let started = Arc::new(Rig::start(rig_options(self.flavour)?).await?);
        *rig = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Ends the rig, if there is one.
    pub(super) async fn close(&self) -> Result<()> {
        match self.rig.lock().await.take() {
            Some(rig) => rig.stop().await,
            None => Ok(()),
        }
    }
}

/// With a deadline; a panic is a failure like others.
async fn run_scenario(scenario: Scenario, cx: &Arc<ScenarioContext>) -> Result<()> {
    let playing = AssertUnwindSafe((scenario.run)(Arc::clone(cx))).catch_unwind();
    let deadline = if scenario.is_long { LONG_DEADLINE } else { DEADLINE };
    match tokio::time::timeout(deadline, playing).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) => Err(anyhow!("{}", panic_message(panic.as_ref()))),
        Err(_) => Err(anyhow!("not done after {deadline:?}")),
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}
