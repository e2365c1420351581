//! A page that names code as `path/to/file.rs:symbol` names code that is there: the file exists and defines the symbol.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};

/// What stands between the file and the symbol.
const SEPARATOR: &str = ".rs:";

/// A symbol that a page names, and on which line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedSymbol<'a> {
    file: PathBuf,
    symbol: &'a str,
    line: usize,
}

/// Complaints about the pages that describe the code.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut pages = vec![root.join("ARCHITECTURE.md")];
    for entry in std::fs::read_dir(root.join("docs")).context("docs")? {
        pages.push(entry?.path());
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    let mut complaints = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        let shown = page.strip_prefix(root).unwrap_or(&page).display().to_string();
        for named in named(&text) {
            let source = std::fs::read_to_string(root.join(&named.file)).ok();
            complaints.extend(complaint(&shown, &named, source.as_deref()));
        }
    }
    Ok(complaints)
}

/// The symbols that a page names in backquotes. A number after the file is a line, which is no symbol.
pub(super) fn named(page: &str) -> Vec<NamedSymbol<'_>> {
    let mut found = Vec::new();
    for (number, line) in page.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let Some((file, symbol)) = quoted.split_once(SEPARATOR) else { continue };
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
            let is_symbol = symbol.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && symbol.chars().all(is_name);
            if is_symbol {
                let file = PathBuf::from(format!("{file}.rs"));
                found.push(NamedSymbol { file, symbol, line: number + 1 });
            }
        }
    }
    found
}

/// What is wrong with a symbol, given the text of its file.
pub(super) fn complaint(
    shown: &str,
    named: &NamedSymbol<'_>,
    source: Option<&str>,
) -> Option<String> {
    let NamedSymbol { file, symbol, line } = named;
    let file = file.display();
    let Some(source) = source else {
        return Some(format!("{shown}:{line}: there is no file {file}"));
    };
    match definitions(source) {
        Ok(definitions) if definitions.contains(*symbol) => None,
        Ok(_) => Some(format!("{shown}:{line}: {file} defines no `{symbol}`")),
        Err(error) => Some(format!("{shown}:{line}: {file} cannot be parsed: {error}")),
    }
}

/// What a file defines: items by their names; methods and variants by their own names, and after that of their type.
fn definitions(source: &str) -> syn::Result<BTreeSet<String>> {
    let mut scan = DefinitionScan::default();
    scan.visit_file(&syn::parse_file(source)?);
    Ok(scan.names)
}

#[derive(Default)]
struct DefinitionScan {
    names: BTreeSet<String>,
    /// The type whose parts are being read.
    owner: Option<String>,
}

impl DefinitionScan {
    fn keep(&mut self, name: &syn::Ident) {
        self.names.insert(name.to_string());
        if let Some(owner) = &self.owner {
            self.names.insert(format!("{owner}::{name}"));
        }
    }

    fn within(&mut self, owner: Option<String>, read: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.owner, owner);
        read(self);
        self.owner = before;
    }
}

impl<'ast> Visit<'ast> for DefinitionScan {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let name = match item {
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Fn(item) => Some(&item.sig.ident),
            syn::Item::Macro(item) => item.ident.as_ref(),
            syn::Item::Mod(item) => Some(&item.ident),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            syn::Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        let own = name.map(ToString::to_string);
        self.names.extend(own.clone());
        let owner = match item {
            syn::Item::Enum(_) | syn::Item::Trait(_) => own,
            syn::Item::Impl(item) => type_name(&item.self_ty),
            _ => None,
        };
        self.within(owner, |scan| visit::visit_item(scan, item));
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.keep(&variant.ident);
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        match item {
            syn::ImplItem::Fn(item) => self.keep(&item.sig.ident),
            syn::ImplItem::Const(item) => self.keep(&item.ident),
            syn::ImplItem::Type(item) => self.keep(&item.ident),
            _ => {}
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        match item {
            syn::TraitItem::Fn(item) => self.keep(&item.sig.ident),
            syn::TraitItem::Const(item) => self.keep(&item.ident),
            syn::TraitItem::Type(item) => self.keep(&item.ident),
            _ => {}
        }
    }
}

fn type_name(implemented: &syn::Type) -> Option<String> {
    match implemented {
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
const LIMIT: u8 = 1;
mod inner { pub(super) fn deep() {} }
struct Queue<T>(T);
impl<T> Queue<T> { const SIZE: u8 = 1; fn next(&mut self) { fn helper() {} } }
impl Iterator for Queue<u8> { type Item = u8; fn count(self) {} }
enum Stage { Syncing, Finished }
trait Work { fn done(&self); }
type Alias = u8;
async fn relist() { let local = 1; }
";

    #[test]
    fn a_symbol_that_a_page_names_is_defined_in_its_file() {
        for (symbol, fine) in [
            ("LIMIT", true),
            ("inner", true),
            ("deep", true),
            ("Queue", true),
            ("Queue::next", true),
            ("next", true),
            ("Queue::SIZE", true),
            ("Queue::Item", true),
            ("Stage::Syncing", true),
            ("Finished", true),
            ("Work::done", true),
            ("Alias", true),
            ("relist", true),
            ("local", false),
            ("Stage::next", false),
            ("Queue::relist", false),
            ("Iterator", false),
            ("relis", false),
        ] {
            let page = format!("first\nsee `a/b.rs:{symbol}`.");
            let found = named(&page);
            assert_eq!(found.len(), 1, "{symbol}");
            let complaint = complaint("docs/x.md", &found[0], Some(SOURCE));
            assert_eq!(complaint.is_none(), fine, "{symbol}: {complaint:?}");
            let expected = format!("docs/x.md:2: a/b.rs defines no `{symbol}`");
            assert!(fine || complaint == Some(expected), "{symbol}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_refused() {
        let found = named("`crates/gone/src/lib.rs:run`");
        let complaint = complaint("ARCHITECTURE.md", &found[0], None);
        assert_eq!(
            complaint.unwrap(),
            "ARCHITECTURE.md:1: there is no file crates/gone/src/lib.rs"
        );
    }

    #[test]
    fn only_a_file_and_a_symbol_in_backquotes_are_taken_for_one() {
        for page in [
            "crates/a.rs:run without backquotes",
            "`crates/a.rs`",
            "`crates/a.rs:12`",
            "`a.rs: some words`",
            "`agent::run`",
        ] {
            assert_eq!(named(page), [], "{page}");
        }
    }
}
