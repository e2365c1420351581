//! Checks that every test that `docs/rules.md` names exists, because a rule whose test was renamed or removed is not checked any more, and that
//! the sections that list every bullet of the facts do so.

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

/// The sections whose every bullet has a row, and how many bullets each has.
const BULLETS: [(&str, usize); 2] = [("## 5 ", 18), ("## 10 ", 9)];

/// Complaints about bullets without a row that names a test or a deviation.
pub(super) fn missing_bullets(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (section, count) in BULLETS {
        let rows: Vec<&str> = rows(text, section).collect();
        let has_row = |bullet: &usize| {
            let start = format!("| Bullet {bullet}: ");
            let tells = |row: &str| row.contains("::") || row.contains("deviations.md");
            rows.iter().any(|row| row.starts_with(&start) && tells(row))
        };
        let missing = (1..=count).filter(|bullet| !has_row(bullet));
        let section = section.trim_start_matches("## ").trim_end();
        complaints.extend(missing.map(|bullet| {
            format!("docs/rules.md: section {section}: bullet {bullet} has no row with a test")
        }));
    }
    complaints
}

/// The lines from the heading on that begins so, up to the next one.
fn rows<'a>(text: &'a str, heading: &str) -> impl Iterator<Item = &'a str> {
    let lines = text.lines().skip_while(move |line| !line.starts_with(heading)).skip(1);
    lines.take_while(|line| !line.starts_with("## "))
}
