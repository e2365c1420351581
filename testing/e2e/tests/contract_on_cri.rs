//! The contract suite on `oarsman cri`, over its socket.
#![expect(clippy::print_stderr, reason = "a test program tells why it failed")]

use std::process::ExitCode;

use libtest_mimic::Arguments;
use oarsman_e2e::{Route, program, run_contract};
use oarsman_rig::{ContainerdFlavour, namespace};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let routes = [("cri", Route::Direct)];
    let run = || run_contract(&arguments, ContainerdFlavour::OarsmanCri, &routes);
    namespace::run_after(program::build, || match run() {
        Ok(conclusion) => conclusion.exit_code(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}
