//! The contract suite on Debian's containerd 1.6. Not part of a plain run: give `--ignored` for it.
#![expect(clippy::print_stderr, reason = "a test program tells why it failed")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use libtest_mimic::{Arguments, Conclusion};
use oarsman_e2e::{ContainerdFixture, Route};
use oarsman_rig::leaks::Snapshot;
use oarsman_rig::{ContainerdFlavour, namespace};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if !arguments.ignored && !arguments.include_ignored {
        eprintln!("nothing done: the cases on Debian's containerd run with --ignored");
        return ExitCode::SUCCESS;
    }
    (arguments.ignored, arguments.include_ignored) = (false, true);
    namespace::run(|| match run_suite(&arguments) {
        Ok(conclusion) => conclusion.exit_code(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn run_suite(arguments: &Arguments) -> Result<Conclusion> {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _inside = tokio.enter();
    let containerd = tokio.block_on(ContainerdFixture::start(ContainerdFlavour::Debian))?;
    let before = tokio.block_on(Snapshot::take(&containerd.rig))?;
    let subject = tokio.block_on(containerd.via(Route::Direct))?;
    let trials = oarsman_contract::trials("debian", &subject, tokio.handle());
    let conclusion = libtest_mimic::run(arguments, trials);
    tokio.block_on(before.compare_until_clean(Duration::from_secs(20)))?;
    tokio.block_on(containerd.rig.stop())?;
    Ok(conclusion)
}
