//! The contract suite on real containerd, straight and through our own server in between.
#![expect(clippy::print_stderr, reason = "a test program tells why it failed")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use libtest_mimic::{Arguments, Conclusion, Trial};
use oarsman_e2e::{ContainerdFixture, Route};
use oarsman_rig::leaks::Snapshot;
use oarsman_rig::{ContainerdFlavour, namespace};

fn main() -> ExitCode {
    namespace::run(|| match run_suite() {
        Ok(conclusion) => conclusion.exit_code(),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn run_suite() -> Result<Conclusion> {
    let arguments = Arguments::from_args();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _inside = tokio.enter();
    let containerd = tokio.block_on(ContainerdFixture::start(ContainerdFlavour::Built))?;
    let before = tokio.block_on(Snapshot::take(&containerd.rig))?;
    let mut trials = Vec::<Trial>::new();
    for (name, route) in [("containerd", Route::Direct), ("our_server", Route::ThroughOurServer)] {
        let subject = tokio.block_on(containerd.via(route))?;
        trials.extend(oarsman_contract::trials(name, &subject, tokio.handle()));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    tokio.block_on(before.compare_until_clean(Duration::from_secs(20)))?;
    tokio.block_on(containerd.rig.stop())?;
    Ok(conclusion)
}
