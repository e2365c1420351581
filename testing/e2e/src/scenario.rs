//! Scenarios: tests of an agent on a real runtime, from a clean rig to a clean rig.
//!
//! All scenarios of a test binary run one after the other on one rig for each flavour, which costs less than a rig for each. The host is
//! compared before and after each one; after one that failed the rig is discarded, so that the next one gets a clean one whatever is left.
//!
//! Several processes of one test binary may share its scenarios and run them in parallel, each on a rig in namespaces of its own
//! (docs/adr/0018).

mod cluster_resources;
mod context;
mod obstacles;
mod share;
mod shared_rig;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use oarsman_rig::parts::{self, kubernetes};
use oarsman_rig::{ContainerdFlavour, RigOptions, namespace};

use crate::program;
pub use cluster_resources::{ours, under_test};
pub use context::ScenarioContext;
use share::ScenarioShare;
use shared_rig::SharedRig;

/// A test that runs in a [`ScenarioContext`].
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// What holds, as a sentence with underscores.
    pub name: &'static str,
    /// The test of it.
    pub run: fn(Arc<ScenarioContext>) -> LocalBoxFuture<'static, Result<()>>,
    /// Whether it compares times, so that nothing else may use the processors meanwhile.
    pub is_alone: bool,
    /// Whether it takes minutes: it is ignored unless it is asked for.
    pub is_long: bool,
}

impl Scenario {
    /// The same, to be run when nothing else does.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    /// The same, to be run only when it is asked for, as by `--ignored`, and with more time.
    #[must_use]
    pub fn long(self) -> Self {
        Self { is_long: true, ..self }
    }
}

/// Makes scenarios of async functions of a `&ScenarioContext`, named after them.
#[macro_export]
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        vec![$($crate::scenario::Scenario {
            name: stringify!($name),
            run: |cx| ::std::boxed::Box::pin(async move { $name(&cx).await }),
            is_alone: false,
            is_long: false,
        }),*]
    };
}

/// The variable that asks for Debian's containerd instead of the newest one.
const DEBIAN: &str = "OARSMAN_ON_DEBIAN_CONTAINERD";

/// The variable that asks for agents with the embedded runtime.
const EMBEDDED: &str = "OARSMAN_ON_EMBEDDED";

/// The variable that asks for `oarsman cri`.
const CRI: &str = "OARSMAN_ON_CRI";

/// The runtime that scenarios run on: the newest containerd, or another when the environment asks for it.
pub fn flavours() -> [ContainerdFlavour; 1] {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let others = [
        (DEBIAN, ContainerdFlavour::Debian),
        (EMBEDDED, ContainerdFlavour::Absent),
        (CRI, ContainerdFlavour::OarsmanCri),
    ];
    let other = others.into_iter().find(|(variable, _)| is_set(variable));
    [other.map_or(ContainerdFlavour::Built, |(_, flavour)| flavour)]
}

/// The options of a rig of that flavour, with our program where it is the runtime.
///
/// # Errors
/// When the path of the program is not known.
pub fn rig_options(flavour: ContainerdFlavour) -> Result<RigOptions> {
    Ok(RigOptions { flavour, program: Some(program::path()?), ..RigOptions::default() })
}

/// The main function of a test binary without the standard harness: builds the program, enters namespaces, and runs every scenario on every
/// flavour, named `<flavour>::<scenario>`.
pub fn main(flavours: &[ContainerdFlavour], scenarios: &[Scenario]) -> ExitCode {
    main_after(program::build, flavours, scenarios)
}

/// The same for scenarios that need a cluster: its programs are built as well.
pub fn main_with_cluster(flavours: &[ContainerdFlavour], scenarios: &[Scenario]) -> ExitCode {
    let ready = || {
        kubernetes::prepare(&kubernetes::CONTROL_PLANE)?;
        kubernetes::prepare(&[kubernetes::KUBELET])?;
        parts::metrics_server()?;
        parts::promtool()?;
        program::build()
    };
    main_after(ready, flavours, scenarios)
}

fn main_after(
    ready: impl FnOnce() -> Result<()>,
    flavours: &[ContainerdFlavour],
    scenarios: &[Scenario],
) -> ExitCode {
    namespace::run_after(ready, || match run_all(flavours, scenarios) {
        Ok(conclusion) => conclusion.exit_code(),
        Err(error) => print_error(&error),
    })
}

fn run_all(flavours: &[ContainerdFlavour], scenarios: &[Scenario]) -> Result<Conclusion> {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let rigs: Vec<Arc<SharedRig>> =
        flavours.iter().map(|flavour| Arc::new(SharedRig::new(*flavour))).collect();
    let share = ScenarioShare::of_this_process();
    let scenarios: Vec<&Scenario> = scenarios.iter().filter(|it| share.has(it)).collect();
    let trials = rigs.iter().flat_map(|shared_rig| {
        scenarios.iter().map(|scenario| trial(shared_rig, **scenario, &share, tokio.handle()))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    for shared_rig in &rigs {
        tokio.block_on(shared_rig.close())?;
    }
    Ok(conclusion)
}

fn trial(
    shared_rig: &Arc<SharedRig>,
    scenario: Scenario,
    share: &ScenarioShare,
    tokio: &tokio::runtime::Handle,
) -> Trial {
    let (shared_rig, share, tokio) = (Arc::clone(shared_rig), share.clone(), tokio.clone());
    let name = format!("{}::{}", shared_rig.name(), scenario.name);
    let trial = Trial::ignorable_test(name.clone(), move || {
        if let Some(obstacle) = shared_rig.obstacle(scenario.name) {
            return Ok(Completion::ignored_with(obstacle));
        }
        if !share.take(&name)? {
            return Ok(Completion::ignored_with("another process plays it"));
        }
        let played = tokio.block_on(shared_rig.run(scenario));
        played.map_err(|error| Failed::from(format!("{error:#}")))?;
        Ok(Completion::Completed)
    });
    trial.with_ignored_flag(scenario.is_long)
}

#[expect(clippy::print_stderr, reason = "this is a test binary's own main")]
fn print_error(error: &anyhow::Error) -> ExitCode {
    eprintln!("{error:#}");
    ExitCode::FAILURE
}
