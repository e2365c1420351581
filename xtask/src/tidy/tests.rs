//! Tests of tidy: on rows of good and bad sources, and on this tree with one fault made on purpose.

use std::collections::BTreeSet;
use std::path::Path;

use super::{clocks, layers, modules, purity, rules, run, seams, sources};

#[test]
fn dependencies_go_to_lower_layers_only() {
    for (from, to, fine) in [
        ("oarsman-core", "oarsman-cri-types", true),
        ("oarsman-agent", "oarsman-core", true),
        ("oarsman-clock", "oarsman-core", true),
        ("oarsman-cluster", "oarsman-clock", true),
        ("oarsman-core", "oarsman-clock", false),
        ("oarsman-volumes", "oarsman-host", true),
        ("oarsman-rig", "oarsman-agent", true),
        ("oarsman-core", "oarsman-cri", false),
        ("oarsman-runtime", "oarsman-agent", false),
        ("oarsman-cri", "oarsman-host", false),
        ("oarsman-agent", "oarsman-world", false),
    ] {
        assert_eq!(layers::complaint(from, to).is_none(), fine, "{from} -> {to}");
    }
}

#[test]
fn a_rule_names_a_test_that_is_there() {
    let functions: BTreeSet<String> =
        rules::functions("fn one() {}\n async fn two(x: u8) {}").map(ToOwned::to_owned).collect();
    for (text, fine) in [
        ("no test at all, and `a word`", true),
        ("| fact | `a::one`, `b::c::two` |", true),
        ("| fact | `a::one`, `b::three` |", false),
        ("| fact | `a::on` |", false),
    ] {
        let complaints = rules::complaints(&rules::named(text), &functions);
        assert_eq!(complaints.is_empty(), fine, "{text}: {complaints:?}");
    }
}

fn rules_row(bullet: usize, told: &str) -> String {
    format!("| Bullet {bullet}: a fact | {told} |\n")
}

/// A page of rules in which every bullet is told of so.
fn rules_page(told: &str) -> String {
    let section = |head: &str, count: usize| {
        let rows = (1..=count).map(|bullet| rules_row(bullet, told));
        format!("## {head}\n\n{}", rows.collect::<String>())
    };
    section("5 Probes", 18) + &section("10 Admission", 9)
}

#[test]
fn every_bullet_of_a_section_has_a_row_that_names_a_test_or_a_deviation() {
    let row = rules_row;
    let whole = rules_page("`a::one`");
    assert_eq!(rules::missing_bullets(&whole), [""; 0]);
    let (third, last) = (row(3, "`a::one`"), row(18, "`a::one`"));
    for (text, missing) in [
        (whole.replacen(&third, &row(3, "see deviations.md"), 1), 0),
        (whole.replacen(&third, &row(3, "nothing"), 1), 1),
        (whole.replacen(&third, "", 1), 1),
        // A bullet of the other section is none of this one.
        (whole.replacen(&last, "", 1) + &last, 1),
    ] {
        assert_eq!(rules::missing_bullets(&text).len(), missing, "{text}");
    }
}

#[test]
fn effects_are_found_however_they_are_spelled() {
    for (text, fine) in [
        ("use std::collections::BTreeMap;", true),
        ("use std::time::Duration;", true),
        ("use std::fs;", false),
        ("use std::{collections::BTreeMap, fs::File};", false),
        ("fn f() { std::thread::yield_now(); }", false),
        ("use std::time::*; use std::time::Instant as I;", false),
        ("fn f() -> u64 { jiff::Timestamp::now().as_second() }", false),
        ("use jiff::Timestamp; fn f() { Timestamp::now(); }", false),
        ("#[cfg(test)] mod tests { use std::fs; }", true),
    ] {
        let complaints = purity::complaints("x.rs", Path::new("x.rs"), text).unwrap();
        assert_eq!(complaints.is_empty(), fine, "{text}: {complaints:?}");
    }
}

#[test]
fn a_module_of_core_uses_lower_modules_only_however_that_is_spelled() {
    for (file, text, fine) in [
        ("lib.rs", "pub mod status; mod fixture;", true),
        ("view.rs", "use crate::ids::PodUid; use crate::view::Exit;", true),
        (
            "status/phase.rs",
            "use super::context::StatusContext; use crate::{ids, view::PodView};",
            true,
        ),
        ("view.rs", "#[cfg(test)] mod tests { use crate::status::generate_api_pod_status; }", true),
        ("view.rs", "#[cfg(test)] use crate::status::generate_api_pod_status;", true),
        ("view.rs", "use std::status::generate_api_pod_status;", true),
        ("view.rs", "use crate::status::generate_api_pod_status;", false),
        ("view/from_cri.rs", "use crate::{ids::PodUid, cri_spec::{NodeContext, labels}};", false),
        ("view/from_cri.rs", "use super::super::status;", false),
        ("view.rs", "mod inner { use super::super::status::generate_api_pod_status; }", false),
        ("view.rs", "fn f() { crate::status::generate_api_pod_status(); }", false),
        ("view.rs", "fn f() -> crate::status::PodStatusInput {}", false),
        ("view.rs", "fn f(x: u8) -> bool { matches!(x, crate::status::ONE) }", false),
        ("view.rs", "use crate::lifecycle::PodFailure;", false), // the same layer
        ("novel.rs", "use std::fmt;", false),                    // in no layer
    ] {
        let complaints = modules::complaints(file, Path::new(file), text).unwrap();
        assert_eq!(complaints.is_empty(), fine, "{file}: {text}: {complaints:?}");
    }
}

#[test]
fn a_broken_order_of_modules_in_core_fails_the_whole_of_tidy() {
    let copy = tempfile::tempdir().unwrap();
    copy_manifests(copy.path());
    let file = copy.path().join("crates/core/src/view.rs");
    std::fs::write(&file, "//! Views.\nuse crate::status::generate_api_pod_status;\n").unwrap();
    let error = run(copy.path()).expect_err("view uses status").to_string();
    assert!(error.contains("view.rs:2: `view` may not use `status`"), "{error}");
}

#[test]
fn a_read_of_the_machines_clock_is_found_however_it_is_spelled() {
    for (text, fine) in [
        ("use jiff::Timestamp; fn f(now: Timestamp) -> Timestamp { now }", true),
        ("use tokio::time::Instant; fn f() { Instant::now(); }", true),
        ("use tokio::time; fn f() { time::Instant::now(); }", true),
        ("fn f(clock: &dyn Clock) { clock.now(); }", true),
        ("#[cfg(test)] mod tests { fn f() { jiff::Timestamp::now(); } }", true),
        ("fn f() { jiff::Timestamp::now(); }", false),
        ("use jiff::Timestamp; fn f() { Timestamp::now(); }", false),
        ("use jiff::Timestamp as Moment; fn f() { Moment::now(); }", false),
        (
            "use jiff::Timestamp; fn f(x: Option<Timestamp>) { x.unwrap_or_else(Timestamp::now); }",
            false,
        ),
        ("use jiff::Timestamp; fn f() { println!(\"{}\", Timestamp::now()); }", false),
        ("use jiff::Zoned; fn f() { Zoned::now(); }", false),
        ("use std::time::SystemTime; fn f() { SystemTime::now(); }", false),
        ("use std::time::{Duration, Instant}; fn f() { Instant::now(); }", false),
        ("use std::time::*; fn f() { Instant::now(); }", false),
        ("use tokio::time::Instant; fn f() { std::time::Instant::now(); }", false),
        ("use rustix::time::clock_gettime;", false),
    ] {
        let complaints = clocks::complaints("x.rs", Path::new("src/x.rs"), text).unwrap();
        assert_eq!(complaints.is_empty(), fine, "{text}: {complaints:?}");
    }
}

#[test]
fn a_clock_read_outside_the_list_fails_the_whole_of_tidy() {
    let read = "//! Reads.\nfn f() {\n    jiff::Timestamp::now();\n}\n";
    for (file, fine) in [
        ("crates/cluster/src/lib.rs", false),
        ("crates/oarsman/src/main.rs", false),
        ("crates/clock/src/lib.rs", true),
        ("crates/cluster/src/tests.rs", true),
        ("testing/world/src/lib.rs", true),
    ] {
        let copy = tempfile::tempdir().unwrap();
        copy_manifests(copy.path());
        std::fs::write(copy.path().join(file), read).unwrap();
        let said = run(copy.path()).map_err(|error| error.to_string());
        assert_eq!(said.is_ok(), fine, "{file}: {said:?}");
        let complaint = format!("{file}:3: `jiff::Timestamp::now` reads the machine's clock");
        assert!(fine || said.is_err_and(|said| said.contains(&complaint)), "{file}");
    }
}

#[test]
fn a_page_a_message_or_a_type_name_that_is_wrong_fails_the_whole_of_tidy() {
    let warning = "//! Warns.\nfn f() {\n    tracing::warn!(pod, \"sync failed\");\n}\n";
    let plan = "//! Plans.\npub struct Plan;\n";
    let rows = "### Fields\n| `pod` | object |\n### Warnings\n| `sync failed` |\n";
    let (agent, main) = ("crates/agent/src/lib.rs", "crates/oarsman/src/main.rs");
    for (files, said) in [
        (vec![(agent, warning), ("docs/operating.md", rows)], ""),
        (vec![(agent, warning)], "lib.rs:3: the warning `sync failed` has no row"),
        (vec![("docs/operating.md", rows)], "operating.md:4: no code logs the warning"),
        (vec![(agent, plan)], ""),
        (
            vec![(agent, plan), (main, plan)],
            "main.rs:2: the public type `Plan` is defined in another",
        ),
        (vec![(agent, plan), ("ARCHITECTURE.md", "`crates/agent/src/lib.rs:Plan`")], ""),
        (
            vec![("docs/x.md", "`crates/agent/src/lib.rs:Plan`")],
            "x.md:1: crates/agent/src/lib.rs defines no `Plan`",
        ),
        (
            vec![(
                agent,
                "//! Seams.\npub trait Disk {}\npub struct Seams { pub disk: std::sync::Arc<dyn Disk> }\n",
            )],
            "the seam Disk is declared in the agent",
        ),
    ] {
        let copy = tempfile::tempdir().unwrap();
        copy_manifests(copy.path());
        for (file, text) in &files {
            std::fs::write(copy.path().join(file), text).unwrap();
        }
        let complaints = run(copy.path()).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(complaints.is_empty(), said.is_empty(), "{files:?}: {complaints}");
        assert!(complaints.contains(said), "{files:?}: {complaints}");
    }
}

#[test]
fn a_file_has_a_module_doc_a_limited_length_and_no_unsafe() {
    let path = Path::new("crates/agent/src/x.rs");
    assert!(sources::complaints(path, "//! Fine.\n").is_empty());
    assert_eq!(sources::complaints(path, "fn f() {}\n").len(), 1);
    assert_eq!(sources::complaints(path, &format!("//! Long.\n{}", "\n".repeat(700))).len(), 1);
    let marked = concat!("//! X.\n#![allow(unsafe", "_code)]\n");
    assert_eq!(sources::complaints(path, marked).len(), 1);
    assert!(sources::complaints(Path::new("crates/host/src/x.rs"), marked).is_empty());
}

#[test]
fn a_seams_trait_in_the_agent_is_refused() {
    let held = "pub struct Seams { pub disk: Arc<dyn Disk>, pub vault: Option<Arc<dyn x::Vault>> }";
    for (declared, refused) in [
        ("use oarsman_state::Disk;", false),
        ("trait Decisions {}", false),
        ("pub trait Disk: Send {}", true),
        ("pub trait Vault {}", true),
        ("mod inner { trait Disk {} }", true),
        ("struct Other { disk: Arc<dyn Decisions> } trait Decisions {}", false),
    ] {
        let mut seams = seams::SeamTraits::default();
        seams.read("declared.rs", declared).unwrap();
        seams.read("seams.rs", held).unwrap();
        let complaints = seams.complaints();
        assert_eq!(!complaints.is_empty(), refused, "{declared}: {complaints:?}");
        assert!(complaints.iter().all(|complaint| complaint.starts_with("declared.rs")));
    }
}

#[test]
fn a_forbidden_dependency_added_on_purpose_is_refused() {
    for (krate, dependency, said) in [
        (
            "crates/core",
            "tokio.workspace = true",
            "oarsman-core: is pure and may not depend on tokio",
        ),
        ("crates/cri-types", "tracing.workspace = true", "may not depend on tracing"),
        ("crates/cri", "oarsman-host.workspace = true", "may not depend on oarsman-host"),
        ("crates/agent", "oarsman-rig.workspace = true", "which is for tests"),
    ] {
        let copy = tempfile::tempdir().unwrap();
        copy_manifests(copy.path());
        assert_eq!(run(copy.path()).map_err(|e| e.to_string()), Ok(()), "the copy starts tidy");
        let manifest = copy.path().join(krate).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let broken = text.replace("[dependencies]", &format!("[dependencies]\n{dependency}"));
        std::fs::write(&manifest, broken).unwrap();
        let error = run(copy.path()).expect_err(dependency).to_string();
        assert!(error.contains(said), "{dependency}: {error}");
    }
}

/// This workspace with its manifests as they are, and empty sources and rules.
fn copy_manifests(to: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for file in ["Cargo.toml", "Cargo.lock"] {
        std::fs::copy(root.join(file), to.join(file)).unwrap();
    }
    std::fs::create_dir(to.join("docs")).unwrap();
    std::fs::write(to.join("docs/rules.md"), rules_page("see deviations.md")).unwrap();
    std::fs::write(to.join("docs/operating.md"), "No messages.\n").unwrap();
    std::fs::write(to.join("ARCHITECTURE.md"), "No symbols.\n").unwrap();
    std::fs::copy(root.join("docs/testing.md"), to.join("docs/testing.md")).unwrap();
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    for package in metadata.workspace_packages() {
        let manifest = package.manifest_path.strip_prefix(root).unwrap();
        let target = to.join(manifest);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(root.join(manifest), target).unwrap();
        for source in package.targets.iter().map(|t| t.src_path.strip_prefix(root).unwrap()) {
            let path = to.join(source);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "//! Empty.\n").unwrap();
        }
    }
}
