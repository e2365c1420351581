//! Real containers in real shims, in a mount namespace and a control group of this test's own. Needs root and a static busybox.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "all of this is tests, whose harness is our own"
)]

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use oarsman_host::namespaces::{NamespaceKind, enter_new, isolate_mounts};
use oarsman_shim::{helper, shim};

mod basics;
mod devices;
mod execs;
mod failures;
mod isolation;
mod mounts;
mod one_tree;
mod pod;
mod recording;
mod sharing;
mod streams;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some(shim::ARGUMENT) => return shim::main(&arguments[2..]),
        Some(helper::ARGUMENT) => return helper::main(&arguments[2..]),
        _ => {}
    }
    let options = Arguments::from_args();
    if !rustix::process::getuid().is_root() || !std::path::Path::new(pod::BUSYBOX).exists() {
        // Listed as ignored, so that they do not count as passed.
        let ignored = cases().into_iter().map(|case| case.with_ignored_flag(true)).collect();
        return libtest_mimic::run(&options, ignored).exit_code();
    }
    enter_new(&[NamespaceKind::Mount]).unwrap();
    isolate_mounts().unwrap();
    if one_tree::is_inside() {
        one_tree::enter();
    }
    let conclusion = libtest_mimic::run(&options, cases());
    pod::remove_cgroups();
    conclusion.exit_code()
}

fn cases() -> Vec<Trial> {
    let all = [
        basics::cases(),
        devices::cases(),
        execs::cases(),
        failures::cases(),
        isolation::cases(),
        mounts::cases(),
        recording::cases(),
        sharing::cases(),
        streams::cases(),
        if one_tree::is_inside() { one_tree::inside_cases() } else { one_tree::cases() },
    ];
    all.into_iter().flatten().collect()
}
