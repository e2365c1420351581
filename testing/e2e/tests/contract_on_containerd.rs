//! The contract suite on real containerd, straight and through our own server in between.
#![expect(clippy::print_stderr, reason = "a test program tells why it failed")]

use std::process::ExitCode;

use libtest_mimic::Arguments;
use oarsman_e2e::{Route, run_contract};
use oarsman_rig::{ContainerdFlavour, namespace};

const ROUTES: [(&str, Route); 2] =
    [("containerd", Route::Direct), ("our_server", Route::ThroughOurServer)];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    namespace::run(|| match run_contract(&arguments, ContainerdFlavour::Built, &ROUTES) {
        Ok(conclusion) => conclusion.exit_code(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}
