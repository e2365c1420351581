//! Checks that `core`, `cri-types` and the other pure crates have no effects: they do not wait, read files or clocks, or log.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, Package};

use super::paths;

/// The pure crates, each with all it may depend on.
const PURE: &[(&str, &[&str])] = &[
    ("oarsman-cri-types", &["prost"]),
    ("oarsman-manifest", &["serde", "serde-saphyr", "serde_json", "thiserror"]),
    (
        "oarsman-core",
        &[
            "oarsman-cri-types",
            "base64",
            "jiff",
            "k8s-openapi",
            "serde",
            "serde_json",
            "serde_path_to_error",
            "sha2",
            "thiserror",
        ],
    ),
    (
        "oarsman-kubelet-config",
        &["oarsman-core", "oarsman-manifest", "serde", "serde_json", "serde_path_to_error"],
    ),
];

/// Paths that have an effect or depend on one.
const IMPURE: &[&str] = &[
    "std::env",
    "std::fs",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "Timestamp::now",
    "Zoned::now",
];

/// Complaints about what the pure crates depend on.
pub(super) fn check_dependencies(metadata: &Metadata) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in metadata.workspace_packages() {
        let Some(allowed) = allowed(package) else {
            continue;
        };
        for dependency in &package.dependencies {
            let counts = dependency.kind == DependencyKind::Normal;
            if counts && !allowed.contains(&dependency.name.as_str()) {
                complaints.push(format!(
                    "{}: is pure and may not depend on {}; effects belong into a crate above it",
                    package.name, dependency.name
                ));
            }
        }
    }
    complaints
}

/// Complaints about effects in one source file of a pure crate; its tests are exempt.
pub(super) fn check_source(root: &Path, package: &Package, path: &Path) -> Result<Vec<String>> {
    let src = package.manifest_path.parent().context("a manifest has a directory")?.join("src");
    let Ok(file) = path.strip_prefix(&src) else {
        return Ok(Vec::new());
    };
    if allowed(package).is_none() || paths::is_test(file) {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    Ok(complaints(&shown, file, &text)?)
}

/// Complaints about effects in the text of one file, which lies at `file` below `src`.
pub(super) fn complaints(shown: &str, file: &Path, text: &str) -> syn::Result<Vec<String>> {
    let judged = paths::of(file, text)?.into_iter().filter_map(|named| {
        let banned = impure(&named.path)?;
        Some(format!("{shown}:{}: `{banned}` in a pure crate", named.line))
    });
    let mut complaints: Vec<String> = judged.collect();
    complaints.dedup();
    Ok(complaints)
}

fn impure(path: &str) -> Option<&'static str> {
    let is_below = |banned: &&&str| {
        path == **banned || path.strip_prefix(**banned).is_some_and(|r| r.starts_with("::"))
    };
    IMPURE.iter().find(is_below).copied()
}

fn allowed(package: &Package) -> Option<&'static [&'static str]> {
    PURE.iter().find(|(name, _)| package.name.as_str() == *name).map(|(_, allowed)| *allowed)
}
