//! libFuzzer around one target, which the environment names; `cargo xtask fuzz` starts it.
//!
//! `OARSMAN_FUZZ_LIST=1` prints the targets and their longest inputs; with `OARSMAN_FUZZ_SEEDS=DIRECTORY` the seeds of the target are
//! written there instead.
#![no_main]

use std::path::Path;
use std::process::exit;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use oarsman_fuzz::{FuzzTarget, TARGETS, find};

static TARGET: OnceLock<&FuzzTarget> = OnceLock::new();

fuzz_target!(
    init: {
        if std::env::var_os("OARSMAN_FUZZ_LIST").is_some() {
            TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.max_len));
            exit(0);
        }
        let target = TARGET.get_or_init(named);
        if let Some(directory) = std::env::var_os("OARSMAN_FUZZ_SEEDS") {
            write_seeds(target, Path::new(&directory));
            exit(0);
        }
    },
    |data: &[u8]| {
        (TARGET.get_or_init(named).run)(data);
    }
);

fn named() -> &'static FuzzTarget {
    let name = std::env::var("OARSMAN_FUZZ_TARGET").unwrap_or_default();
    find(&name).unwrap_or_else(|| {
        eprintln!("OARSMAN_FUZZ_TARGET={name} is no target");
        exit(2)
    })
}

fn write_seeds(target: &FuzzTarget, directory: &Path) {
    for (number, seed) in (target.seeds)().iter().enumerate() {
        if let Err(error) = std::fs::write(directory.join(format!("seed-{number}")), seed) {
            eprintln!("cannot write a seed of {}: {error}", target.name);
            exit(2);
        }
    }
}
