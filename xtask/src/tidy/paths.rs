//! Lists every path that a source file names outside of its tests, written out in full.
//!
//! `use` groups are taken apart, names that a `use` brought in are replaced by what they stand for, and `self::` and `super::` become `crate::`.
//! Macros are read token by token, because their content is not parsed.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A path and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedPath {
    /// In full: `crate::view::PodView`, `std::time::Instant::now`.
    pub(super) path: String,
    /// Its line, counted from 1.
    pub(super) line: usize,
}

/// The paths that a file names, tests left out. `file` is relative to the `src` directory of its crate.
pub(super) fn of(file: &Path, text: &str) -> syn::Result<Vec<NamedPath>> {
    let mut scan =
        SourcePathScan { module: module(file), found: Vec::new(), imports: BTreeMap::new() };
    scan.visit_file(&syn::parse_file(text)?);
    let SourcePathScan { found, imports, .. } = scan;
    let mut named = Vec::new();
    for (path, line) in found {
        let first = path.first().map(String::as_str).unwrap_or_default();
        let Some(meant) = imports.get(first) else {
            named.push(NamedPath { path: path.join("::"), line });
            continue;
        };
        for import in meant {
            let whole = [import.as_slice(), &path[1..]].concat();
            named.push(NamedPath { path: whole.join("::"), line });
        }
    }
    Ok(named)
}

/// Whether a file holds nothing but tests and their helpers.
pub(super) fn is_test(file: &Path) -> bool {
    let is_test = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        matches!(name.as_ref(), "tests" | "tests.rs" | "fixture.rs" | "benches" | "examples")
    };
    file.components().any(is_test)
}

/// The module of a file: `view/from_cri.rs` is `["view", "from_cri"]`.
fn module(file: &Path) -> Vec<String> {
    let names = file.with_extension("");
    let names = names.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    names.filter(|name| !matches!(name.as_str(), "lib" | "main" | "mod")).collect()
}

struct SourcePathScan {
    /// The current module.
    module: Vec<String>,
    found: Vec<(Vec<String>, usize)>,
    /// What a name stands for; two functions of a file may import different things under one name.
    imports: BTreeMap<String, Vec<Vec<String>>>,
}

impl SourcePathScan {
    fn keep(&mut self, path: Vec<String>, line: usize) {
        if !path.is_empty() {
            let path = self.absolute(path);
            self.found.push((path, line));
        }
    }

    /// The path from the crate's root, if it is relative to this module.
    fn absolute(&self, mut path: Vec<String>) -> Vec<String> {
        let here = path.iter().take_while(|name| matches!(name.as_str(), "self" | "super")).count();
        if here == 0 || path == ["self"] {
            return path;
        }
        let ups = path.iter().take(here).filter(|name| *name == "super").count();
        let base = self.module.iter().take(self.module.len().saturating_sub(ups));
        let rest = path.split_off(here);
        std::iter::once("crate".to_owned()).chain(base.cloned()).chain(rest).collect()
    }

    fn keep_use(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let line = tree.span().start().line;
        let joined = |name: &syn::Ident| match name == "self" && !prefix.is_empty() {
            true => prefix.to_vec(),
            false => [prefix, &[name.to_string()]].concat(),
        };
        match tree {
            syn::UseTree::Path(path) => self.keep_use(&joined(&path.ident), &path.tree),
            syn::UseTree::Name(name) => {
                let whole = joined(&name.ident);
                let known_as = whole.last().cloned().unwrap_or_default();
                self.import(known_as, whole, line);
            }
            syn::UseTree::Rename(name) => {
                self.import(name.rename.to_string(), joined(&name.ident), line);
            }
            syn::UseTree::Glob(_) => self.keep(prefix.to_vec(), line),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.keep_use(prefix, tree));
            }
        }
    }

    fn import(&mut self, known_as: String, whole: Vec<String>, line: usize) {
        let whole = self.absolute(whole);
        self.found.push((whole.clone(), line));
        self.imports.entry(known_as).or_default().push(whole);
    }

    /// Every `a::b::c` among the tokens of a macro.
    fn keep_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut line) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.keep(std::mem::take(&mut path), line);
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    colons = 0;
                    self.keep_tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => colons = 0,
            }
        }
        self.keep(path, line);
    }
}

impl<'ast> Visit<'ast> for SourcePathScan {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.module.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.keep_use(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.keep(names, path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.keep_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }

    // Paths in doc comments and derives do not count.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// The attributes of an item, as far as items of that kind are ever for tests only.
pub(super) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether something is compiled for tests only.
pub(super) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "test")
    })
}
