//! The contract suite on Debian's containerd 1.6. Not part of a plain run: give `--ignored` for it.
#![expect(clippy::print_stderr, reason = "a test program tells why it failed")]

use std::process::ExitCode;

use libtest_mimic::Arguments;
use oarsman_e2e::{Route, run_contract};
use oarsman_rig::{ContainerdFlavour, namespace};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if !arguments.ignored && !arguments.include_ignored {
        eprintln!("nothing done: the cases on Debian's containerd run with --ignored");
        return ExitCode::SUCCESS;
    }
    (arguments.ignored, arguments.include_ignored) = (false, true);
    let routes = [("debian", Route::Direct)];
    namespace::run(|| match run_contract(&arguments, ContainerdFlavour::Debian, &routes) {
        Ok(conclusion) => conclusion.exit_code(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}
