//! Builds the test binaries of stages on the rig, and the program they test: by one call of cargo each, with the features that every other stage
//! has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Artifact, Message};

const PROGRAM: &str = "oarsman";

/// A test binary, and the directory that it has to be started in.
#[derive(Debug, Clone)]
pub(super) struct TestBinary {
    pub(super) program: PathBuf,
    pub(super) directory: PathBuf,
}

/// What cargo has built.
pub(super) struct BuiltTests {
    /// By package directory and name of the test.
    tests: BTreeMap<(PathBuf, String), TestBinary>,
    /// The program under test.
    pub(super) program: PathBuf,
}

impl BuiltTests {
    /// The tests of that name in the package of that directory; all of them, when no name is given.
    pub(super) fn of(&self, package: &Path, names: &[&str]) -> Result<Vec<(String, TestBinary)>> {
        let of_package = self.tests.iter().filter(|((directory, _), _)| directory == package);
        let wanted = |name: &str| names.is_empty() || names.contains(&name);
        let found: Vec<(String, TestBinary)> = of_package
            .filter(|((_, name), _)| wanted(name))
            .map(|((_, name), binary)| (name.clone(), binary.clone()))
            .collect();
        ensure!(
            found.len() >= names.len().max(1),
            "cargo built only {found:?} of {names:?} in {}",
            package.display()
        );
        Ok(found)
    }
}

/// Builds tests by their names, in all packages that have them, and the program.
pub(super) fn build(root: &Path, tests: &[String]) -> Result<BuiltTests> {
    let mut arguments = vec!["test", "--workspace", "--no-run"];
    arguments.extend(tests.iter().flat_map(|test| ["--test", test.as_str()]));
    let artifacts = artifacts(root, &arguments)?;
    let tests = artifacts.into_iter().filter(|it| it.target.is_test()).filter_map(test).collect();
    let programs = self::artifacts(root, &["build", "--workspace", "--bin", PROGRAM])?;
    let of_program =
        programs.into_iter().find(|it| it.target.name == PROGRAM && it.target.is_bin());
    let program = of_program.and_then(|it| it.executable).context("cargo built no program")?;
    Ok(BuiltTests { tests, program: program.into_std_path_buf() })
}

fn test(artifact: Artifact) -> Option<((PathBuf, String), TestBinary)> {
    let directory = artifact.manifest_path.parent()?.as_std_path().to_owned();
    let program = artifact.executable?.into_std_path_buf();
    Some(((directory.clone(), artifact.target.name), TestBinary { program, directory }))
}

fn artifacts(root: &Path, arguments: &[&str]) -> Result<Vec<Artifact>> {
    println!("$ cargo {}", arguments.join(" "));
    let mut cargo: Command = oarsman_rig::cargo();
    cargo.current_dir(root).args(arguments).arg("--message-format=json-render-diagnostics");
    let output = cargo.stdout(Stdio::piped()).stderr(Stdio::inherit()).output();
    let output = output.context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo {} ended with {}", arguments.join(" "), output.status);
    let mut artifacts = Vec::new();
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message? {
            artifacts.push(artifact);
        }
    }
    Ok(artifacts)
}
