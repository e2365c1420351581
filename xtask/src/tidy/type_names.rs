//! The name of a public type means one thing in the workspace, and no type or variant is named by a metaphor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::Package;
use syn::visit::{self, Visit};
use syn::{Ident, Visibility};

use super::paths;

/// Names that several crates may define, each with the reason.
const SHARED: &[(&str, &str)] =
    &[("Result", "an alias with the crate's own error, as `std::io::Result` is")];

/// Words that say by a picture what a usual term says plainly.
const METAPHORS: &[&str] = &[
    "Census",
    "Desk",
    "Dice",
    "Ears",
    "Furniture",
    "Guest",
    "Lane",
    "Ledger",
    "Notebook",
    "Office",
    "Purse",
    "Sheet",
    "Shelf",
    "Tale",
    "Theatre",
    "Vault",
    "Witness",
    "Workbench",
];

/// The types of all crates.
#[derive(Debug, Default)]
pub(super) struct TypeNames {
    /// Where each public type is defined, as `file:line`, by its name and its crate.
    public: BTreeMap<String, BTreeMap<String, String>>,
    complaints: Vec<String>,
}

impl TypeNames {
    /// Reads one source file of a crate; what tests define is theirs.
    pub(super) fn read_file(&mut self, root: &Path, package: &Package, path: &Path) -> Result<()> {
        let directory = package.manifest_path.parent().context("a manifest has a directory")?;
        if path.strip_prefix(directory).is_ok_and(paths::is_test) {
            return Ok(());
        }
        let text = std::fs::read_to_string(path)?;
        let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
        Ok(self.read(package.name.as_str(), &shown, &text)?)
    }

    /// Reads the text of one file; `shown` is how complaints name it.
    pub(super) fn read(&mut self, krate: &str, shown: &str, text: &str) -> syn::Result<()> {
        let mut scan = TypeScan::default();
        scan.visit_file(&syn::parse_file(text)?);
        for DefinedType { name, is_public, line } in scan.types {
            let place = format!("{shown}:{line}");
            if let Some(word) = words(&name).into_iter().find(|word| METAPHORS.contains(word)) {
                self.complaints.push(format!(
                    "{place}: `{name}` is named by the metaphor `{word}`; use the term of Kubernetes or of Rust services"
                ));
            }
            if is_public {
                self.public.entry(name).or_default().entry(krate.to_owned()).or_insert(place);
            }
        }
        Ok(())
    }

    /// What is wrong, once all files were read.
    pub(super) fn complaints(self) -> Vec<String> {
        let shared: BTreeSet<&str> = SHARED.iter().map(|(name, _)| *name).collect();
        let twice = self
            .public
            .iter()
            .filter(|(name, crates)| crates.len() > 1 && !shared.contains(name.as_str()));
        let twice = twice.map(|(name, crates)| {
            let mut places = crates.values();
            let first = places.next().map(String::as_str).unwrap_or_default();
            let others: Vec<&str> = places.map(String::as_str).collect();
            format!(
                "{first}: the public type `{name}` is defined in another crate too ({}); rename one, \
                 or give a reason in xtask/src/tidy/type_names.rs",
                others.join(", ")
            )
        });
        let twice: Vec<String> = twice.collect();
        [self.complaints, twice].concat()
    }
}

/// A type or a variant that a file defines.
#[derive(Debug)]
struct DefinedType {
    name: String,
    /// Whether it is `pub`, not `pub(crate)`.
    is_public: bool,
    line: usize,
}

#[derive(Default)]
struct TypeScan {
    types: Vec<DefinedType>,
}

impl TypeScan {
    fn keep(&mut self, name: &Ident, visibility: &Visibility) {
        let is_public = matches!(visibility, Visibility::Public(_));
        let line = name.span().start().line;
        self.types.push(DefinedType { name: name.to_string(), is_public, line });
    }
}

impl<'ast> Visit<'ast> for TypeScan {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if paths::is_for_tests(paths::attributes(item)) {
            return;
        }
        match item {
            syn::Item::Struct(item) => self.keep(&item.ident, &item.vis),
            syn::Item::Enum(item) => {
                self.keep(&item.ident, &item.vis);
                let variants = item.variants.iter();
                variants.for_each(|variant| self.keep(&variant.ident, &Visibility::Inherited));
            }
            syn::Item::Trait(item) => self.keep(&item.ident, &item.vis),
            syn::Item::Type(item) => self.keep(&item.ident, &item.vis),
            syn::Item::Union(item) => self.keep(&item.ident, &item.vis),
            _ => visit::visit_item(self, item),
        }
    }
}

/// The words of a name in camel case.
fn words(name: &str) -> Vec<&str> {
    let capitals = name.char_indices().filter(|(_, letter)| letter.is_uppercase());
    let starts: Vec<usize> = capitals.map(|(start, _)| start).collect();
    let ends = starts.iter().skip(1).copied().chain([name.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| name.get(*start..end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let mut names = TypeNames::default();
        for (krate, text) in files {
            names.read(krate, &format!("{krate}/lib.rs"), text).unwrap();
        }
        names.complaints()
    }

    #[test]
    fn a_public_type_name_stands_in_one_crate_only() {
        for (first, second, fine) in [
            ("pub struct Plan;", "pub struct Other;", true),
            ("pub struct Plan;", "struct Plan;", true),
            ("pub struct Plan;", "pub(crate) struct Plan;", true),
            ("pub struct Plan;", "pub(super) enum Plan {}", true),
            ("pub type Result<T> = A<T>;", "pub type Result<T> = B<T>;", true),
            ("pub struct Plan;", "#[cfg(test)] mod tests { pub struct Plan; }", true),
            ("pub struct Plan;", "impl A { pub fn plan() {} }", true),
            ("pub struct Plan;", "pub struct Plan;", false),
            ("pub struct Plan;", "mod inner { pub enum Plan {} }", false),
            ("pub trait Plan {}", "pub type Plan = u8;", false),
            ("pub union Plan { a: u8 }", "pub struct Plan(u8);", false),
        ] {
            let complaints = complaints(&[("a", first), ("b", second)]);
            assert_eq!(complaints.is_empty(), fine, "{first} {second}: {complaints:?}");
        }
        let complaints = complaints(&[("a", "pub struct Plan;"), ("b", "\npub enum Plan {}")]);
        assert!(complaints[0].starts_with("a/lib.rs:1: the public type `Plan`"), "{complaints:?}");
        assert!(complaints[0].contains("(b/lib.rs:2)"), "{complaints:?}");
    }

    #[test]
    fn one_crate_may_use_a_name_twice() {
        let files = [("a", "pub struct Plan;"), ("a", "pub mod other { pub struct Plan; }")];
        assert_eq!(complaints(&files), Vec::<String>::new());
    }

    #[test]
    fn a_metaphor_is_refused_as_a_whole_word_only() {
        for (text, fine) in [
            ("struct StatusDesk;", false),
            ("pub(crate) enum Ledger {}", false),
            ("struct TaleOfPods;", false),
            ("trait DiceRoller {}", false),
            ("enum Mode { Guest, Kubelet }", false),
            ("enum Mode { Run, Kubelet }", true),
            ("struct Desktop;", true),
            ("struct Talents;", true),
            ("struct SpreadsheetReader;", true),
            ("#[cfg(test)] mod tests { struct Witness; }", true),
        ] {
            let complaints = complaints(&[("a", text)]);
            assert_eq!(complaints.is_empty(), fine, "{text}: {complaints:?}");
        }
    }
}
