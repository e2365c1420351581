//! Builds the engine: libFuzzer and the targets, with coverage counters at every edge of the code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::run;

/// What makes LLVM count edges and tell libFuzzer of comparisons. The stable compiler takes these; only the sanitizers need another.
const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=16";

/// The built program.
pub(super) struct Engine {
    program: PathBuf,
}

/// A target of the program.
pub(super) struct EngineTarget {
    pub(super) name: String,
    pub(super) max_len: u64,
}

impl Engine {
    /// Builds it into `directory`, with the versions of the main lock file.
    pub(super) fn build(root: &Path, directory: &Path) -> Result<Self> {
        let has_compiler = Command::new("c++").arg("--version").output().is_ok();
        ensure!(has_compiler, "libFuzzer is C++: install a compiler (apt-get install g++)");
        let workspace = root.join("testing/fuzz/engine");
        fs::copy(root.join("Cargo.lock"), workspace.join("Cargo.lock")).context("Cargo.lock")?;
        let target = directory.join("target");
        let host = host()?;
        let mut cargo = oarsman_rig::cargo();
        // With a target, build scripts and macros are left without instrumentation.
        cargo.current_dir(&workspace).args(["build", "--release", "--target", &host]);
        cargo.env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", INSTRUMENTATION);
        run(&mut cargo)?;
        Ok(Self { program: target.join(host).join("release/oarsman-fuzz-engine") })
    }

    /// The targets that it has.
    pub(super) fn targets(&self) -> Result<Vec<EngineTarget>> {
        let output = Command::new(&self.program).env("OARSMAN_FUZZ_LIST", "1").output();
        let output = output.with_context(|| self.program.display().to_string())?;
        let text = String::from_utf8(output.stdout)?;
        let target = |line: &str| -> Result<EngineTarget> {
            let (name, max_len) = line.split_once(' ').context("a target without length")?;
            Ok(EngineTarget { name: name.to_owned(), max_len: max_len.parse()? })
        };
        text.lines().map(target).collect()
    }

    /// A command of the engine for one target.
    pub(super) fn command(&self, target: &EngineTarget) -> Command {
        let mut command = Command::new(&self.program);
        command.env("OARSMAN_FUZZ_TARGET", &target.name);
        command.arg(format!("-max_len={}", target.max_len));
        // Targets that write files would wait for the disk most of the time.
        command.env("TMPDIR", "/dev/shm");
        command
    }
}

/// The triple of this machine.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc -vV")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}
