//! The list of stages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use oarsman_rig::parts::kubernetes;

use super::advisories;
use crate::command::{cache, cargo, cargo_with, run};

/// cargo-deny is compiled once into the cache.
const CARGO_DENY: &str = "0.20.2";

/// The crates whose tests need root, namespaces and the rig's components.
const NEED_THE_RIG: [&str; 3] = ["testing/rig", "testing/e2e", "crates/runtime"];
/// How many simulations `./test` runs; `cargo xtask sim --lives 5000` runs more (docs/testing.md).
const LIVES: &str = "500";

/// A stage of `./test`.
pub(super) struct TestStage {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) work: StageWork,
}

/// The work of a stage.
pub(super) enum StageWork {
    /// A task that has the processors for itself.
    Task(fn(&Path) -> Result<()>),
    /// Test binaries, which run beside those of other stages.
    Tests(StageTests),
}

/// Test binaries of a package.
pub(super) struct StageTests {
    /// The directory of the package.
    pub(super) directory: &'static str,
    /// Their names; none means all.
    pub(super) names: &'static [&'static str],
    pub(super) split: ProcessSplit,
    /// The variable that asks for another runtime, if any; see testing/e2e/src/scenario.rs.
    pub(super) runtime: Option<&'static str>,
}

/// How test binaries are run.
pub(super) enum ProcessSplit {
    /// By one process each.
    Whole,
    /// By several processes each, which share their scenarios.
    Shared {
        processes: usize,
        /// Whether some of them are left out and run when nothing else does.
        some_alone: bool,
    },
}

impl StageTests {
    /// How many processes run each binary in parallel.
    pub(super) fn processes(&self) -> usize {
        match self.split {
            ProcessSplit::Whole => 1,
            ProcessSplit::Shared { processes, .. } => processes,
        }
    }

    pub(super) fn some_alone(&self) -> bool {
        matches!(self.split, ProcessSplit::Shared { some_alone: true, .. })
    }
}

/// Cheapest first so that a failure shows early; those on the rig come last, and longest first.
pub(super) const STAGES: &[TestStage] = &[
    task("format", "every file is formatted", format),
    task("tidy", "layers, purity, docs, sizes and budgets", tidy),
    task(
        "deny",
        "licences, sources, doubled crates, and advisories where there is a database",
        deny,
    ),
    task("clippy", "the lint table, on everything", clippy),
    task("docs", "the documentation builds without a warning", docs),
    task("unit", "tables, properties and loops that need no rig", unit),
    task("lives", "five hundred simulated lives, some of them twice", simulate),
    task("mistakes", "wrong decisions, each of which must be noticed", mistakes),
    task("parts", "containerd, runc, CNI, images and a control plane, built once", parts),
    task("wire", "our CRI messages equal upstream's, and clients are who Go takes them for", wire),
    TestStage {
        name: "rig",
        what: "the rig starts, stops and catches leaks",
        work: StageWork::Tests(StageTests {
            directory: "testing/rig",
            names: &[],
            split: ProcessSplit::Whole,
            runtime: None,
        }),
    },
    whole(
        "contract",
        "what a CRI runtime does, on real containerd",
        &["contract_on_containerd", "parts", "scenario_harness"],
    ),
    TestStage {
        name: "embedded",
        what: "what a CRI runtime does, on the embedded runtime",
        work: StageWork::Tests(StageTests {
            directory: "crates/runtime",
            names: &[],
            split: ProcessSplit::Whole,
            runtime: None,
        }),
    },
    TestStage {
        name: "pods",
        what: "pods from files live and die on real containerd",
        work: e2e(&["pods"], ProcessSplit::Shared { processes: 3, some_alone: true }),
    },
    on_runtime(
        INSIDE,
        "on-embedded",
        "examples and commands again, with the embedded runtime",
        &["run", "commands"],
        ProcessSplit::Shared { processes: 1, some_alone: false },
    ),
    shared("cri", "the embedded runtime in a process of its own", &["oarsman_cri"], 1),
    shared("run", "the examples, as a person runs and interrupts them", &["run"], 2),
    shared("commands", "what a person asks of a running agent", &["commands"], 1),
    shared(
        "explain",
        "why pods do not run, made to happen and told by the command",
        &["explain"],
        2,
    ),
    TestStage {
        name: "node",
        what: "a node of a real cluster, and the swap with the Go kubelet",
        work: e2e(&["real_node"], ProcessSplit::Shared { processes: 4, some_alone: true }),
    },
    whole("readme", "every command of the README, typed at a terminal", &["readme"]),
    TestStage {
        name: "endurance",
        what: "the agent and the runtime die, hang and rest",
        work: e2e(&["endurance"], ProcessSplit::Shared { processes: 3, some_alone: true }),
    },
];

/// The variables that ask for the embedded runtime inside of the agent, and for `oarsman cri`.
const INSIDE: &str = "OARSMAN_ON_EMBEDDED";
const APART: &str = "OARSMAN_ON_CRI";

/// What `cargo xtask embedded` runs: all scenarios that the embedded runtime can run, inside of the agent and as `oarsman cri`.
pub(super) const ON_EMBEDDED: &[TestStage] = &[
    every(INSIDE, "pods on embedded", &["pods"]),
    every(INSIDE, "run on embedded", &["run"]),
    every(INSIDE, "commands on embedded", &["commands"]),
    every(INSIDE, "explain on embedded", &["explain"]),
    every(INSIDE, "endurance on embedded", &["endurance"]),
    every(INSIDE, "node on embedded", &["real_node"]),
    whole("contract on cri", "what a CRI runtime does, over its socket", &["contract_on_cri"]),
    every(APART, "pods on cri", &["pods"]),
    every(APART, "run on cri", &["run"]),
    every(APART, "commands on cri", &["commands"]),
    every(APART, "explain on cri", &["explain"]),
    every(APART, "endurance on cri", &["endurance"]),
    every(APART, "node on cri", &["real_node"]),
];

const fn every(
    runtime: &'static str,
    name: &'static str,
    names: &'static [&'static str],
) -> TestStage {
    let split = ProcessSplit::Shared { processes: 1, some_alone: true };
    on_runtime(runtime, name, "on the embedded runtime", names, split)
}

const fn on_runtime(
    runtime: &'static str,
    name: &'static str,
    what: &'static str,
    names: &'static [&'static str],
    split: ProcessSplit,
) -> TestStage {
    let runtime = Some(runtime);
    let tests = StageTests { directory: "testing/e2e", names, split, runtime };
    TestStage { name, what, work: StageWork::Tests(tests) }
}

const fn task(name: &'static str, what: &'static str, run: fn(&Path) -> Result<()>) -> TestStage {
    TestStage { name, what, work: StageWork::Task(run) }
}

const fn whole(
    name: &'static str,
    what: &'static str,
    names: &'static [&'static str],
) -> TestStage {
    TestStage { name, what, work: e2e(names, ProcessSplit::Whole) }
}

const fn shared(
    name: &'static str,
    what: &'static str,
    names: &'static [&'static str],
    processes: usize,
) -> TestStage {
    TestStage {
        name,
        what,
        work: e2e(names, ProcessSplit::Shared { processes, some_alone: false }),
    }
}

const fn e2e(names: &'static [&'static str], split: ProcessSplit) -> StageWork {
    StageWork::Tests(StageTests { directory: "testing/e2e", names, split, runtime: None })
}

fn format(root: &Path) -> Result<()> {
    cargo(root, &["fmt", "--all", "--check"])
}

fn tidy(root: &Path) -> Result<()> {
    crate::tidy::run(root)
}

fn deny(root: &Path) -> Result<()> {
    let mut command = Command::new(cargo_deny(root)?);
    run(command.current_dir(root).args(["check", "bans", "licenses", "sources"]))?;
    advisories::check(root, &cargo_deny(root)?)
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
    let on_the_rig = NEED_THE_RIG.map(|directory| root.join(directory));
    let tests = integration_tests(root, |package| !on_the_rig.iter().any(|it| it == package))?;
    arguments.extend(tests.iter().flat_map(|test| ["--test", test.as_str()]));
    test(root, &arguments)
}

fn simulate(root: &Path) -> Result<()> {
    cargo(root, &crate::sim(&["--lives", LIVES]))
}

fn mistakes(root: &Path) -> Result<()> {
    cargo(root, &crate::sim(&["--mistakes", "--lives", "1000"]))
}

fn parts(_root: &Path) -> Result<()> {
    oarsman_rig::parts::prepare()?;
    kubernetes::prepare(&kubernetes::CONTROL_PLANE)?;
    kubernetes::prepare(&[kubernetes::KUBELET])?;
    oarsman_rig::parts::metrics_server()?;
    oarsman_rig::parts::promtool()?;
    oarsman_rig::parts::client_names().map(drop)
}

fn wire(root: &Path) -> Result<()> {
    let upstream = oarsman_rig::parts::prepare()?.cri_proto;
    let client_names = oarsman_rig::parts::client_names()?;
    let environment = [
        ("OARSMAN_UPSTREAM_CRI_PROTO", upstream.as_os_str()),
        ("OARSMAN_GO_CLIENT_NAMES", client_names.as_os_str()),
    ];
    let tests = ["test", "--workspace", "--test", "wire_format", "--test", "client_names"];
    cargo_with(root, &[&tests[..], &["--", "--include-ignored"]].concat(), &environment)
}

fn test(root: &Path, targets: &[&str]) -> Result<()> {
    cargo(root, &[&["test", "--workspace"], targets].concat())
}

/// The names of the integration tests of some of our crates, which are given by their directories.
pub(super) fn integration_tests(root: &Path, of: impl Fn(&Path) -> bool) -> Result<Vec<String>> {
    let manifest = root.join("Cargo.toml");
    let metadata =
        cargo_metadata::MetadataCommand::new().manifest_path(manifest).no_deps().exec()?;
    let packages = metadata.workspace_packages().into_iter();
    let wanted =
        packages.filter(|it| it.manifest_path.parent().is_some_and(|it| of(it.as_std_path())));
    let targets = wanted.flat_map(|package| &package.targets);
    Ok(targets.filter(|target| target.is_test()).map(|target| target.name.clone()).collect())
}
