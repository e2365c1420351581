//! Compiles the demo program into one static file, with the compiler that compiles this crate and nothing but its standard library.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/bin/oarsman-demo";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=build.rs");
    let program = PathBuf::from(variable("OUT_DIR")).join("demo");
    if let Err(why) = compile(&program) {
        // Without it all works but the examples. An image without a program says so itself.
        println!("cargo::warning=the examples' image is left out: {why}");
        fs::write(&program, []).unwrap_or_else(|error| println!("cargo::error={error}"));
    }
}

fn compile(program: &Path) -> Result<(), String> {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--crate-name", "oarsman_demo", "--edition", "2024", "--target"]);
    rustc.arg(variable("TARGET")).arg(Path::new(SOURCE).join("main.rs")).arg("-o").arg(program);
    for option in ["target-feature=+crt-static", "panic=abort", "opt-level=s", "strip=symbols"] {
        rustc.args(["-C", option]);
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let done = rustc.output().map_err(|error| format!("the compiler cannot be run: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let first = said.lines().find(|line| line.starts_with("error")).unwrap_or("it gives no reason");
    Err(format!("{first} (is the static C library installed?)"))
}

/// Cargo sets it.
fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_default()
}
