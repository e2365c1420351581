//! The time budgets of stages: a table in docs/testing.md, which a run compares itself with.
//!
//! A run over budget is reported and does not fail: the machine may be busy otherwise.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::list::STAGES;
use super::{BUILD, INSTALL, SIDE_BY_SIDE};

const PAGE: &str = "docs/testing.md";
/// The first cell of the table.
const HEAD: &str = "stage";
const IN_ALL: &str = "in all";
/// Set by xtask/prepare.sh when there was no build directory.
const FROM_NOTHING: &str = "OARSMAN_TEST_FROM_NOTHING";

/// The time of a stage or another step.
pub(super) struct StageTime {
    what: &'static str,
    time: Duration,
}

impl StageTime {
    pub(super) fn new(what: &'static str, time: Duration) -> Self {
        Self { what, time }
    }
}

/// The budgets in seconds, by the first cell of a row.
pub(super) struct StageBudgets(BTreeMap<String, BudgetRow>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BudgetRow {
    warm: u64,
    from_nothing: u64,
}

impl StageBudgets {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
        Ok(Self(rows(&text)))
    }

    /// The budget of a stage, with everything built before.
    pub(super) fn warm(&self, stage: &str) -> u64 {
        self.0.get(stage).map_or(0, |row| row.warm)
    }

    /// A line for every step, with its budget, and a mark when it took more.
    pub(super) fn report(&self, taken: &[StageTime], in_all: Duration, is_whole: bool) -> String {
        let from_nothing = std::env::var_os(FROM_NOTHING).is_some();
        let of = |row: &BudgetRow| if from_nothing { row.from_nothing } else { row.warm };
        self.report_with(of, taken, in_all, is_whole)
    }

    fn report_with(
        &self,
        of: impl Fn(&BudgetRow) -> u64,
        taken: &[StageTime],
        in_all: Duration,
        is_whole: bool,
    ) -> String {
        let mut report = String::new();
        let whole = is_whole.then(|| StageTime::new(IN_ALL, in_all));
        for StageTime { what, time } in taken.iter().chain(&whole) {
            let budget = self.0.get(*what).map(&of);
            line(&mut report, what, *time, budget);
        }
        report
    }
}

fn line(report: &mut String, what: &str, time: Duration, budget: Option<u64>) {
    let seconds = time.as_secs_f64();
    let told = match budget {
        Some(budget) if time > Duration::from_secs(budget) => {
            format!(" of {budget:>4} s  {what}: OVER BUDGET")
        }
        Some(budget) => format!(" of {budget:>4} s  {what}"),
        None => format!("            {what}"),
    };
    // Writing to a string does not fail.
    writeln!(report, "{seconds:>7.1} s{told}").ok();
}

/// The rows of the table: a name, and two budgets in seconds.
fn rows(page: &str) -> BTreeMap<String, BudgetRow> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().trim_matches('*').to_owned())
            .collect()
    };
    let is_head = |line: &&str| cells(line).first().is_some_and(|cell| cell == HEAD);
    let table = page.lines().skip_while(|line| !is_head(line)).skip(2);
    let rows = table.take_while(|line| line.starts_with('|')).filter_map(|line| {
        let cells = cells(line);
        let seconds = |index: usize| cells.get(index)?.parse().ok();
        Some((cells.first()?.clone(), BudgetRow { warm: seconds(1)?, from_nothing: seconds(2)? }))
    });
    rows.collect()
}

/// Complaints of tidy: a stage without a row, and a row without a stage.
pub(crate) fn complaints(page: &str) -> Vec<String> {
    let rows = rows(page);
    let others = [INSTALL, BUILD, SIDE_BY_SIDE, IN_ALL];
    let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).chain(others).collect();
    let missing = names.iter().filter(|name| !rows.contains_key(**name));
    let missing = missing.map(|name| format!("{PAGE}: {name} has no budget"));
    let unknown = rows.keys().filter(|row| !names.contains(&row.as_str()));
    missing.chain(unknown.map(|row| format!("{PAGE}: {row} is no stage"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# T\n| x | y |\n|---|---|\n| no | 1 |\n\n\
        | stage | budget | from nothing | last |\n|---|---|---|---|\n| unit | 60 | 300 | 55 |\n| **in all** | 1200 | 3600 | |\n\n| after | 1 | 2 |\n";

    #[test]
    fn the_table_of_budgets_is_found_among_others() {
        let expected = [("in all", 1200, 3600), ("unit", 60, 300)];
        let expected = expected
            .map(|(name, warm, from_nothing)| (name.to_owned(), BudgetRow { warm, from_nothing }));
        assert_eq!(rows(PAGE), BTreeMap::from(expected));
    }

    #[test]
    fn a_stage_without_a_row_and_a_row_without_a_stage_are_named() {
        let page = PAGE.replace("unit", "units");
        let told = complaints(&page);
        assert!(told.contains(&"docs/testing.md: unit has no budget".to_owned()), "{told:?}");
        assert!(told.contains(&"docs/testing.md: units is no stage".to_owned()), "{told:?}");
        assert!(!complaints(PAGE).iter().any(|it| it.contains(": unit")));
    }

    #[test]
    fn a_stage_over_its_budget_is_marked() {
        let budgets = StageBudgets(rows(PAGE));
        let taken = |seconds| [StageTime::new("unit", Duration::from_secs(seconds))];
        let report = |seconds| {
            budgets.report_with(|row| row.warm, &taken(seconds), Duration::from_secs(9), true)
        };
        assert_eq!(report(60), "   60.0 s of   60 s  unit\n    9.0 s of 1200 s  in all\n");
        assert!(report(61).contains("unit: OVER BUDGET"), "{}", report(61));
        assert!(!budgets.report(&taken(1), Duration::from_secs(9), false).contains("in all"));
    }
}
