//! The contract suite on the embedded runtime, with real containers, in mount and network namespaces and a control group of this test's own.
//! Needs root and the parts of the rig.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "all of this is tests")]

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use libtest_mimic::{Arguments, Conclusion, Trial};
use oarsman_host::namespaces::{NamespaceKind, enter_new, isolate_mounts};
use oarsman_rig::parts::{self, Parts};
use oarsman_shim::{helper, shim};

mod built_in;
mod cni;
mod harness;
mod kills;
mod leaks;
mod reconnect;
mod streaming;
mod traffic;

use harness::Node;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(shim::ARGUMENT) => return shim::main(&arguments[2..]),
        Some(helper::ARGUMENT) => return helper::main(&arguments[2..]),
        Some(cni::AGENT) => return cni::run_agent(&arguments[2..]),
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
    // The registry is there.
    let loopback = Command::new("ip").args(["link", "set", "lo", "up"]).status()?;
    ensure!(loopback.success(), "ip could not bring loopback up");
    let before = leaks::scan()?;
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let node = Node::new(&parts)?;
    let contract = tokio.block_on(node.contract())?;
    let mut trials = oarsman_contract::trials("embedded", &contract, tokio.handle());
    trials.extend(reconnect::trials(&node, tokio.handle()));
    trials.extend(streaming::trials(&node, tokio.handle()));
    trials.extend(built_in::trials(&node, tokio.handle()));
    trials.extend(traffic::trials(&node, tokio.handle()));
    trials.extend(kills::trials(&node, tokio.handle()));
    let by_plugins = tokio.block_on(cni::contract(&node))?;
    trials.extend(cni::contract_trials(&by_plugins, tokio.handle()));
    trials.extend(cni::trials(&node, tokio.handle()));
    let conclusion = libtest_mimic::run(&options, trials);
    tokio.block_on(node.close())?;
    drop((contract, by_plugins));
    drop(tokio);
    cni::remove_bridges()?;
    leaks::check(&before)?;
    Ok(conclusion)
}
