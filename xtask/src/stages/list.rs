//! The stages themselves, cheapest first so that a slip is told early.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::command::{cache, cargo, cargo_with, run};

/// cargo-deny is compiled once into the cache.
const CARGO_DENY: &str = "0.20.2";

/// The crates whose tests need root, namespaces and the rig's parts.
const NEED_THE_RIG: &[&str] = &["oarsman-rig", "oarsman-e2e"];

pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) run: fn(&Path) -> Result<()>,
}

pub(super) const STAGES: &[Stage] = &[
    Stage { name: "format", what: "every file is formatted", run: format },
    Stage { name: "tidy", what: "layers, purity, docs and sizes", run: tidy },
    Stage { name: "deny", what: "licences, sources and doubled crates", run: deny },
    Stage { name: "clippy", what: "the lint table, on everything", run: clippy },
    Stage { name: "docs", what: "the documentation builds without a warning", run: docs },
    Stage { name: "unit", what: "tables, properties and loops that need no rig", run: unit },
    Stage { name: "lives", what: "a thousand simulated lives, some of them twice", run: lives },
    Stage {
        name: "mistakes",
        what: "wrong decisions, each of which must be noticed",
        run: mistakes,
    },
    Stage { name: "parts", what: "containerd, runc, CNI and images, built once", run: parts },
    Stage { name: "wire", what: "our CRI messages equal upstream's, field by field", run: wire },
    Stage { name: "rig", what: "the rig starts, stops and catches leaks", run: rig },
    Stage { name: "contract", what: "what a CRI runtime does, on real containerd", run: contract },
    Stage { name: "pods", what: "pods from files live and die on real containerd", run: pods },
    Stage { name: "run", what: "the examples, as a person runs and interrupts them", run: person },
    Stage { name: "commands", what: "what a person asks of a running agent", run: commands },
    Stage {
        name: "explain",
        what: "why pods do not run, made to happen and told by the command",
        run: explain,
    },
    Stage {
        name: "node",
        what: "a node of a real cluster, and the swap with the Go kubelet",
        run: node,
    },
    Stage { name: "readme", what: "every command of the README, typed at a terminal", run: readme },
    Stage {
        name: "endurance",
        what: "the agent and the runtime die, hang and rest",
        run: endurance,
    },
];

fn format(root: &Path) -> Result<()> {
    cargo(root, &["fmt", "--all", "--check"])
}

fn tidy(root: &Path) -> Result<()> {
    crate::tidy::run(root)
}

fn deny(root: &Path) -> Result<()> {
    let mut command = Command::new(cargo_deny(root)?);
    // Advisories live in a git repository that a machine without internet cannot reach.
    run(command.current_dir(root).args(["check", "bans", "licenses", "sources"]))
}

fn cargo_deny(root: &Path) -> Result<PathBuf> {
    let home = cache()?.join("tools").join(format!("cargo-deny-{CARGO_DENY}"));
    let binary = home.join("bin/cargo-deny");
    if !binary.exists() {
        let target = cache()?.join("tools/target");
        let home = home.to_string_lossy().into_owned();
        let arguments = ["install", "cargo-deny", "--locked", "--version", CARGO_DENY];
        let quick = ["--no-default-features", "--root", &home];
        let environment = [("CARGO_TARGET_DIR", target.as_os_str())];
        cargo_with(root, &[&arguments[..], &quick[..]].concat(), &environment)?;
        std::fs::remove_dir_all(target)?;
    }
    Ok(binary)
}

fn clippy(root: &Path) -> Result<()> {
    cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn docs(root: &Path) -> Result<()> {
    let environment = [("RUSTDOCFLAGS", "-D warnings".as_ref())];
    cargo_with(root, &["doc", "--workspace", "--no-deps"], &environment)
}

/// The whole workspace is selected every time and only the targets differ: features stay the same, and nothing is built twice.
fn unit(root: &Path) -> Result<()> {
    let mut arguments = vec!["--lib", "--bins"];
    let tests = integration_tests(root, |package| !NEED_THE_RIG.contains(&package))?;
    arguments.extend(tests.iter().flat_map(|test| ["--test", test.as_str()]));
    test(root, &arguments)
}

fn lives(root: &Path) -> Result<()> {
    cargo(root, &crate::sim(&["--lives", "1000"]))
}

fn mistakes(root: &Path) -> Result<()> {
    cargo(root, &crate::sim(&["--mistakes", "--lives", "1000"]))
}

fn parts(_root: &Path) -> Result<()> {
    oarsman_rig::parts::prepare().map(drop)
}

fn wire(root: &Path) -> Result<()> {
    let upstream = oarsman_rig::parts::prepare()?.cri_proto;
    let environment = [("OARSMAN_UPSTREAM_CRI_PROTO", upstream.as_os_str())];
    let arguments = ["test", "--workspace", "--test", "wire_format", "--", "--include-ignored"];
    cargo_with(root, &arguments, &environment)
}

fn rig(root: &Path) -> Result<()> {
    test_package(root, "oarsman-rig")
}

fn contract(root: &Path) -> Result<()> {
    test(root, &["--test", "contract_on_containerd", "--test", "parts", "--test", "stage"])
}

fn pods(root: &Path) -> Result<()> {
    test(root, &["--test", "pods"])
}

fn person(root: &Path) -> Result<()> {
    test(root, &["--test", "run"])
}

fn commands(root: &Path) -> Result<()> {
    test(root, &["--test", "commands"])
}

fn explain(root: &Path) -> Result<()> {
    test(root, &["--test", "explain"])
}

fn node(root: &Path) -> Result<()> {
    test(root, &["--test", "real_node"])
}

fn readme(root: &Path) -> Result<()> {
    test(root, &["--test", "readme"])
}

fn endurance(root: &Path) -> Result<()> {
    test(root, &["--test", "endurance"])
}

fn test_package(root: &Path, name: &str) -> Result<()> {
    let tests = integration_tests(root, |package| package == name)?;
    test(root, &tests.iter().flat_map(|test| ["--test", test.as_str()]).collect::<Vec<_>>())
}

fn test(root: &Path, targets: &[&str]) -> Result<()> {
    cargo(root, &[&["test", "--workspace"], targets].concat())
}

/// The names of the integration tests of some of our crates.
fn integration_tests(root: &Path, of: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let manifest = root.join("Cargo.toml");
    let metadata =
        cargo_metadata::MetadataCommand::new().manifest_path(manifest).no_deps().exec()?;
    let packages = metadata.workspace_packages().into_iter().filter(|p| of(p.name.as_str()));
    let targets = packages.flat_map(|package| &package.targets);
    Ok(targets.filter(|target| target.is_test()).map(|target| target.name.clone()).collect())
}
