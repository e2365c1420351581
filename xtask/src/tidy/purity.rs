//! `core` and `cri-types` decide and describe; they do not wait, read files, ask for the time or log.

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, Package};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

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

/// Complaints about effects in one source file of a pure crate; its tests are free.
pub(super) fn check_source(root: &Path, package: &Package, path: &Path) -> Result<Vec<String>> {
    let src = package.manifest_path.parent().context("a manifest has a directory")?.join("src");
    let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
    if allowed(package).is_none() || !path.starts_with(&src) || is_test {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    Ok(complaints(&name, &text)?)
}

/// Complaints about effects in one file's text.
pub(super) fn complaints(name: &str, text: &str) -> syn::Result<Vec<String>> {
    let mut scan = Scan { name, complaints: Vec::new() };
    scan.visit_file(&syn::parse_file(text)?);
    Ok(scan.complaints)
}

fn allowed(package: &Package) -> Option<&'static [&'static str]> {
    PURE.iter().find(|(name, _)| package.name.as_str() == *name).map(|(_, allowed)| *allowed)
}

struct Scan<'a> {
    name: &'a str,
    complaints: Vec<String>,
}

impl Scan<'_> {
    fn judge(&mut self, path: &str, line: usize) {
        let is_impure = |banned: &&&str| {
            path == **banned || path.strip_prefix(**banned).is_some_and(|r| r.starts_with("::"))
        };
        if let Some(banned) = IMPURE.iter().find(is_impure) {
            self.complaints.push(format!("{}:{line}: `{banned}` in a pure crate", self.name));
        }
    }

    fn judge_use(&mut self, prefix: &str, tree: &syn::UseTree) {
        let joined = |name: &syn::Ident| match prefix {
            "" => name.to_string(),
            _ => format!("{prefix}::{name}"),
        };
        match tree {
            syn::UseTree::Path(path) => self.judge_use(&joined(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.judge(&joined(&name.ident), tree.span().start().line),
            syn::UseTree::Rename(name) => {
                self.judge(&joined(&name.ident), tree.span().start().line);
            }
            syn::UseTree::Glob(_) => self.judge(prefix, tree.span().start().line),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.judge_use(prefix, tree);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Scan<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let is_test = module.attrs.iter().any(|a| {
            a.path().is_ident("cfg")
                && a.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "test")
        });
        if !is_test {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.judge_use("", &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.judge(&names.join("::"), path.span().start().line);
        visit::visit_path(self, path);
    }
}
