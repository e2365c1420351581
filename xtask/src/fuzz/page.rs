//! Writes docs/fuzz.md: a table with a row for each target, from its last run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::figures::TargetFigures;
use crate::command::first_line;

const PAGE: &str = "docs/fuzz.md";

const HEAD: &str = "# Fuzzing

Every parser of what others wrote has a fuzz target in `testing/fuzz/src/targets`: a plain function of bytes that panics when a property
does not hold. libFuzzer searches for inputs, guided by the coverage of the code, on the toolchain of `rust-toolchain.toml`; it needs a
C++ compiler (Debian: g++).

```console
# cargo xtask fuzz                                every target for ten minutes, two at a time
# cargo xtask fuzz --target manifests --minutes 60
# cargo xtask fuzz --minutes 1 --jobs 1
```

What reaches new code is kept in `testing/fuzz/corpus`, minimised, one tar archive a target. An input that breaks a target is left in
`$OARSMAN_CACHE/fuzz/TARGET/crashes`: fix the code and keep the input in `testing/fuzz/regressions/TARGET`. The unit stage of `./test` replays
seeds, corpus and regressions in seconds, without the engine (`testing/fuzz/tests/replay.rs`).

The last run of each target, by the command above. Written by `cargo xtask fuzz`: do not edit this table.

| target | minutes | executions | edges covered | inputs kept | crashes | at commit |
|---|---|---|---|---|---|---|
";

/// Replaces the rows of the targets that were fuzzed.
pub(super) fn write(root: &Path, figures: &[TargetFigures]) -> Result<()> {
    let mut git = Command::new("git");
    let commit = first_line(git.current_dir(root).args(["rev-parse", "--short", "HEAD"]))?;
    let path = root.join(PAGE);
    let old = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, page(&old, figures, &commit))?;
    println!("{PAGE} is written");
    Ok(())
}

fn page(old: &str, figures: &[TargetFigures], commit: &str) -> String {
    let mut rows: BTreeMap<String, String> =
        old.lines().filter_map(|line| Some((target(line)?.to_owned(), line.to_owned()))).collect();
    for figures in figures {
        let TargetFigures { name, minutes, executions, coverage, inputs, crashes } = figures;
        let row = format!(
            "| {name} | {minutes} | {executions} | {coverage} | {inputs} | {crashes} | {commit} |"
        );
        rows.insert(name.clone(), row);
    }
    let rows: Vec<String> = rows.into_values().collect();
    format!("{HEAD}{}\n", rows.join("\n"))
}

/// The target of a row.
fn target(line: &str) -> Option<&str> {
    let name = line.strip_prefix("| ")?.split(" |").next()?;
    (name != "target").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &str, executions: u64) -> TargetFigures {
        let name = name.to_owned();
        TargetFigures { name, minutes: 1, executions, coverage: 2, inputs: 3, crashes: 0 }
    }

    #[test]
    fn a_run_replaces_the_rows_of_its_targets_and_keeps_the_others() {
        let first = page("", &[figures("b", 1), figures("a", 2)], "c1");
        let second = page(&first, &[figures("b", 9)], "c2");
        let rows: Vec<_> = second.lines().skip_while(|line| !line.starts_with("|---")).collect();
        assert_eq!(rows[1..], ["| a | 1 | 2 | 2 | 3 | 0 | c1 |", "| b | 1 | 9 | 2 | 3 | 0 | c2 |"]);
    }
}
