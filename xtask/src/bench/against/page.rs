//! Writes docs/bench-against.md, which compares two builds of our program.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::RoundSize;
use super::figures::{ComparisonRow, Pairwise, ProgramRound, RowBound, median, rows};
use crate::commit::Commit;

/// The whole page.
pub(super) fn page(
    commit: &Commit,
    own: &str,
    extent: RoundSize,
    turns: &Pairwise<Vec<ProgramRound>>,
) -> String {
    let RoundSize { rounds, singles, burst, bursts, .. } = extent;
    let rows = rows(turns);
    let beyond = rows.iter().filter(|row| !row.is_within()).count();
    let theirs = commit.short();
    let verdict = if beyond == 0 {
        "All are within bounds.".to_owned()
    } else {
        format!("{beyond} are beyond bounds.")
    };
    format!(
        "# Against an earlier commit\n\n\
         Written by `cargo xtask bench --against {theirs}`: release builds of {theirs} and of {own}, in turns on one rig, {rounds} rounds of {singles} \
         single pods and {bursts} bursts of {burst} each; medians of all rounds. A time may be 1.05 of theirs; a count may not be more (by a fifth of a call a pod at most: `Status` is \
         called by the clock). Counts are containerd's and the API server's own.\n\n\
         {verdict}\n\n{}\n## CRI calls a pod, by name\n\n{}",
        table(&rows),
        calls(turns)
    )
}

fn table(rows: &[ComparisonRow]) -> String {
    let mut text =
        "| what | theirs | ours | ours / theirs | within |\n|---|---|---|---|---|\n".to_owned();
    for row in rows {
        let within = if row.is_within() { "yes" } else { "NO" };
        let ratio = match row.bound {
            RowBound::Ratio => format!("{:.3}", row.ratio()),
            RowBound::Count => String::new(),
        };
        // Writing to a string does not fail.
        writeln!(
            text,
            "| {} | {:.3} | {:.3} | {ratio} | {within} |",
            row.what, row.theirs, row.ours
        )
        .ok();
    }
    text
}

/// The calls that differ.
fn calls(turns: &Pairwise<Vec<ProgramRound>>) -> String {
    let all = turns.theirs.iter().chain(&turns.ours);
    let names: BTreeSet<&String> = all
        .flat_map(|program_round| {
            program_round.start_counts.calls.keys().chain(program_round.stop_counts.calls.keys())
        })
        .collect();
    let mut text =
        "| call | start, theirs | ours | delete, theirs | ours |\n|---|---|---|---|---|\n"
            .to_owned();
    for name in names {
        let start = |turns: &[ProgramRound]| {
            median(turns.iter().map(|program_round| program_round.start_counts.call(name)))
        };
        let stop = |turns: &[ProgramRound]| {
            median(turns.iter().map(|program_round| program_round.stop_counts.call(name)))
        };
        let Pairwise { theirs, ours } = turns;
        let cells = [start(theirs), start(ours), stop(theirs), stop(ours)];
        let cells = cells.map(|cell| format!("{cell:.2}")).join(" | ");
        writeln!(text, "| {name} | {cells} |").ok();
    }
    text
}
