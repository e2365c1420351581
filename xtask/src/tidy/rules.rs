//! Checks that every test that `docs/rules.md` names exists: a rule whose test was renamed or removed is not checked any more.

use std::collections::BTreeSet;

/// The tests that the text names: paths in backquotes.
pub(super) fn named(text: &str) -> BTreeSet<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|path| path.contains("::")).collect()
}

/// Names of functions in a source file.
pub(super) fn functions(source: &str) -> impl Iterator<Item = &str> {
    let after = source.split("fn ").skip(1);
    after.filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
}

/// Complaints about paths whose last part is no function anywhere.
pub(super) fn complaints(named: &BTreeSet<&str>, functions: &BTreeSet<String>) -> Vec<String> {
    let missing = named.iter().filter(|path| {
        let name = path.rsplit("::").next().unwrap_or_default();
        !functions.contains(name)
    });
    missing.map(|path| format!("docs/rules.md: {path} is nowhere; name the fact's row")).collect()
}
