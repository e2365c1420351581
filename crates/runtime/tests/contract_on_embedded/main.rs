//! The contract suite on the embedded runtime, with real containers, in mount and network namespaces and a control group of this test's own.
//! Needs root and the parts of the rig.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "all of this is tests")]

use std::process::ExitCode;

use anyhow::Result;
use libtest_mimic::{Arguments, Conclusion, Trial};
use oarsman_host::namespaces::{NamespaceKind, enter_new, isolate_mounts};
use oarsman_rig::parts::{self, Parts};
use oarsman_shim::{helper, shim};

mod harness;
mod kills;
mod leaks;
mod reconnect;

use harness::Node;

/// A registry has to be asked for this, which the embedded runtime cannot do yet.
const NEEDS_REGISTRY: &str = "a_private_image_wants_its_credentials";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(shim::ARGUMENT) => return shim::main(&arguments[2..]),
        Some(helper::ARGUMENT) => return helper::main(&arguments[2..]),
        Some(kills::AGENT) => return kills::run_agent(&arguments[2..]),
        _ => {}
    }
    match run_suite() {
        Ok(conclusion) => conclusion.exit_code(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_suite() -> Result<Conclusion> {
    let options = Arguments::from_args();
    if options.list || !rustix::process::getuid().is_root() {
        // Listed as ignored, so that they do not count as passed.
        let ignored = |case: oarsman_contract::ContractCase| {
            Trial::test(format!("embedded::{}", case.name), || Ok(())).with_ignored_flag(true)
        };
        let all = oarsman_contract::cases().into_iter().map(ignored).collect();
        return Ok(libtest_mimic::run(&options, all));
    }
    let parts: Parts = parts::prepare()?;
    enter_new(&[NamespaceKind::Mount, NamespaceKind::Network])?;
    isolate_mounts()?;
    let before = leaks::scan()?;
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let node = Node::new(&parts)?;
    let contract = tokio.block_on(node.contract())?;
    let cases = oarsman_contract::trials("embedded", &contract, tokio.handle());
    let needs_registry = |trial: &Trial| trial.name().ends_with(NEEDS_REGISTRY);
    let mut trials: Vec<Trial> = cases
        .into_iter()
        .map(|trial| {
            let is_ignored = needs_registry(&trial);
            trial.with_ignored_flag(is_ignored)
        })
        .collect();
    trials.extend(reconnect::trials(&node, tokio.handle()));
    trials.extend(kills::trials(&node, tokio.handle()));
    let conclusion = libtest_mimic::run(&options, trials);
    tokio.block_on(node.close())?;
    drop(contract);
    drop(tokio);
    leaks::check(&before)?;
    Ok(conclusion)
}
