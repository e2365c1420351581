//! Every input that is kept is tried again: the seeds, the corpus that fuzzing has found, and what has crashed a target once.
#![expect(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use oarsman_fuzz::{FuzzTarget, TARGETS};

/// An input and where it comes from.
struct KeptInput {
    place: String,
    bytes: Vec<u8>,
}

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn seeds(target: &FuzzTarget) -> Vec<KeptInput> {
    let seeds = (target.seeds)().into_iter().enumerate();
    seeds.map(|(n, bytes)| KeptInput { place: format!("seed {n}"), bytes }).collect()
}

fn corpus(target: &FuzzTarget) -> Vec<KeptInput> {
    let path = directory("corpus").join(format!("{}.tar", target.name));
    let archive = match File::open(&path) {
        Ok(archive) => archive,
        // A new target has none until it is fuzzed.
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let mut archive = tar::Archive::new(archive);
    let mut kept = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.header().entry_type().is_file() {
            let place = entry.path().unwrap().display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            kept.push(KeptInput { place, bytes });
        }
    }
    kept
}

fn regressions(target: &FuzzTarget) -> Vec<KeptInput> {
    let entries = match fs::read_dir(directory("regressions").join(target.name)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let input = |path: PathBuf| KeptInput {
        place: path.display().to_string(),
        bytes: fs::read(&path).unwrap(),
    };
    paths.map(input).collect()
}

/// The inputs of a target that make it panic.
fn failures(target: &FuzzTarget, inputs: &[KeptInput]) -> Vec<String> {
    let fails = |input: &&KeptInput| catch_unwind(|| (target.run)(&input.bytes)).is_err();
    let failed = inputs.iter().filter(fails);
    failed.map(|input| format!("{}: {}", target.name, input.place)).collect()
}

#[test]
fn no_input_that_is_kept_breaks_a_target() {
    let mut failed = Vec::new();
    for target in TARGETS {
        failed.extend(failures(target, &seeds(target)));
        failed.extend(failures(target, &corpus(target)));
        failed.extend(failures(target, &regressions(target)));
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_target_has_a_name_of_its_own_and_seeds() {
    for target in TARGETS {
        assert!(!seeds(target).is_empty(), "{} has no seeds", target.name);
        assert_eq!(TARGETS.iter().filter(|it| it.name == target.name).count(), 1);
    }
}

#[test]
fn what_is_kept_belongs_to_a_target_and_is_small() {
    let mut bytes = 0;
    for kept in ["corpus", "regressions"] {
        for entry in fs::read_dir(directory(kept)).into_iter().flatten() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let name = name.trim_end_matches(".tar");
            assert!(oarsman_fuzz::find(name).is_some(), "{kept} of {name}, which is no target");
            bytes += entry.metadata().unwrap().len();
        }
    }
    assert!(bytes < 4 << 20, "the corpus has {bytes} bytes: minimise it");
}
