//! Prints findings as a table or as JSON.

use std::io::{self, Write};

use serde_json::json;

use super::finding::{Finding, FindingSeverity};

/// How many findings there are of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FindingCount {
    pub(super) ok: usize,
    pub(super) warnings: usize,
    pub(super) problems: usize,
}

impl FindingCount {
    pub(super) fn of(findings: &[Finding]) -> Self {
        let of = |weight| findings.iter().filter(|finding| finding.weight == weight).count();
        Self {
            ok: of(FindingSeverity::Ok),
            warnings: of(FindingSeverity::Warning),
            problems: of(FindingSeverity::Problem),
        }
    }

    fn summary(self) -> String {
        let problems = match self.problems {
            0 => return format!("{} ok, {}: pods can be run here", self.ok, self.warned()),
            1 => "1 problem".to_owned(),
            problems => format!("{problems} problems"),
        };
        format!("{} ok, {}, {problems}: fix what is marked as a problem", self.ok, self.warned())
    }

    fn warned(self) -> String {
        format!("{} warning{}", self.warnings, if self.warnings == 1 { "" } else { "s" })
    }
}

/// Writes a table with a summary below it.
pub(super) fn table(
    out: &mut impl Write,
    findings: &[Finding],
    has_colours: bool,
) -> io::Result<()> {
    let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or_default();
    for finding in findings {
        let (word, colour) = label(finding.weight);
        let padding = " ".repeat("problem".len() - word.len());
        let word = if has_colours { format!("\x1b[{colour}m{word}\x1b[0m") } else { word.into() };
        writeln!(out, "{word}{padding}  {:width$}  {}", finding.check, finding.what)?;
        if let Some(fix) = &finding.fix {
            writeln!(out, "{:9}{:width$}  fix: {fix}", "", "")?;
        }
    }
    writeln!(out, "\n{}", FindingCount::of(findings).summary())
}

fn label(weight: FindingSeverity) -> (&'static str, u8) {
    match weight {
        FindingSeverity::Ok => ("ok", 32),
        FindingSeverity::Warning => ("warning", 33),
        FindingSeverity::Problem => ("problem", 31),
    }
}

/// Writes one JSON document.
pub(super) fn json(out: &mut impl Write, findings: &[Finding]) -> io::Result<()> {
    let FindingCount { ok, warnings, problems } = FindingCount::of(findings);
    let summary = json!({ "ok": ok, "warnings": warnings, "problems": problems });
    let document = json!({ "findings": findings, "summary": summary });
    writeln!(out, "{document:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::ok("swap", "none is on"),
            Finding::warning("clock", "is late", "set it"),
            Finding::problem("permissions", "not root", "sudo oarsman check"),
        ]
    }

    fn written(findings: &[Finding], has_colours: bool) -> String {
        let mut out = Vec::new();
        table(&mut out, findings, has_colours).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_table_has_a_line_for_each_finding_and_one_for_each_fix() {
        let want = "\
ok       swap         none is on
warning  clock        is late
                      fix: set it
problem  permissions  not root
                      fix: sudo oarsman check

1 ok, 1 warning, 1 problem: fix what is marked as a problem
";
        assert_eq!(written(&findings(), false), want);
    }

    #[test]
    fn colours_change_nothing_but_the_colour() {
        let coloured = written(&findings(), true);
        assert!(coloured.contains("\x1b[31mproblem\x1b[0m  permissions"), "{coloured}");
        let mut plain = coloured.replace("\x1b[0m", "");
        for colour in ["\x1b[31m", "\x1b[32m", "\x1b[33m"] {
            plain = plain.replace(colour, "");
        }
        assert_eq!(plain, written(&findings(), false));
    }

    #[test]
    fn without_a_problem_the_summary_says_so() {
        let text = written(&findings()[..1], false);
        assert!(text.ends_with("\n1 ok, 0 warnings: pods can be run here\n"), "{text}");
    }

    #[test]
    fn json_output_has_the_same_findings() {
        let mut out = Vec::new();
        json(&mut out, &findings()).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(document["summary"], json!({ "ok": 1, "warnings": 1, "problems": 1 }));
        let want =
            json!({ "check": "clock", "weight": "warning", "what": "is late", "fix": "set it" });
        assert_eq!(document["findings"][1], want);
        assert_eq!(document["findings"][0].get("fix"), None);
    }
}
