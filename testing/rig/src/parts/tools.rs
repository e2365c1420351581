//! Checks for programs that must be installed on the machine, and names their Debian packages.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The path in Debian's busybox-static.
pub(super) const BUSYBOX: &str = "/bin/busybox";

/// Programs by name, with their package.
const PROGRAMS: [(&str, &str); 5] = [
    ("gcc", "gcc"),
    ("go", "golang-go, or a newer Go from go.dev"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("pkg-config", "pkg-config"),
];
/// Files by path, with their package.
const FILES: [(&str, &str); 2] =
    [("/usr/include/seccomp.h", "libseccomp-dev"), (BUSYBOX, "busybox-static")];

/// Fails with one line that names everything that is missing.
pub(super) fn check() -> Result<()> {
    let programs = PROGRAMS.iter().filter(|(name, _)| !is_on_path(name));
    let files = FILES.iter().filter(|(path, _)| !Path::new(path).exists());
    let missing: Vec<String> =
        programs.chain(files).map(|(name, package)| format!("{name} ({package})")).collect();
    ensure!(missing.is_empty(), "missing on this machine: {}", missing.join(", "));
    ensure!(is_static(BUSYBOX)?, "{BUSYBOX} is not static: install busybox-static in its place");
    Ok(())
}

/// Whether a program is in PATH.
pub(super) fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// A dynamic program names its loader.
fn is_static(program: &str) -> Result<bool> {
    let loader = b"/ld-linux";
    Ok(!fs::read(program)?.windows(loader.len()).any(|bytes| bytes == loader))
}

/// Runs a command and returns its stdout, or fails with the end of its stderr.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = complaint.lines().collect();
        bail!("{name} failed:\n{}", lines[lines.len().saturating_sub(20)..].join("\n"));
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
