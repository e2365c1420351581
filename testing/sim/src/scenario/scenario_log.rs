//! The world's trace of a scenario, as lines that name containers rather than ids.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_world::trace::{Caller, TraceEntry};

use crate::SimulationResult;

/// Lines in order with the second they fall into (timers are a little late by nature), such as `StopContainer main#0 30s`, `main#0 started` or
/// `ExecSync main#0 ["/script"] is fine`.
#[derive(Clone, Debug)]
pub struct ScenarioLog {
    lines: Vec<(u64, String)>,
}

impl ScenarioLog {
    /// Everything about containers, their sandboxes and the calls that concern them.
    pub fn of(result: &SimulationResult) -> Self {
        let mut builder = ScenarioLogBuilder::default();
        result.records.iter().for_each(|record| builder.record(record.at, &record.entry));
        let ScenarioLogBuilder { names, mut lines, .. } = builder;
        for (_, line) in &mut lines {
            // The call that makes a container comes before its id is known, so names are put in afterwards.
            *line = names.iter().fold(line.clone(), |line, (id, name)| line.replace(id, name));
        }
        Self { lines }
    }

    /// Every line with this prefix, and its second.
    pub fn all<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = (u64, &'a str)> {
        let those = self.lines.iter().filter(move |(_, line)| line.starts_with(beginning));
        those.map(|(at, line)| (*at, line.as_str()))
    }

    /// The second of the first line with this prefix.
    pub fn when(&self, beginning: &str) -> Option<u64> {
        self.all(beginning).next().map(|(at, _)| at)
    }

    /// The first of these prefixes whose line does not come after that of the one before it.
    pub fn out_of_order<'a>(&self, beginnings: &[&'a str]) -> Option<&'a str> {
        let mut lines = self.lines.iter();
        let mut follows = |beginning: &&&str| !lines.any(|(_, line)| line.starts_with(**beginning));
        beginnings.iter().find(&mut follows).copied()
    }
}

#[derive(Default)]
struct ScenarioLogBuilder {
    /// Names of containers and sandboxes by id.
    names: BTreeMap<String, String>,
    /// Calls under way.
    calls: BTreeMap<u64, String>,
    lines: Vec<(u64, String)>,
}

impl ScenarioLogBuilder {
    fn record(&mut self, at: Duration, entry: &TraceEntry) {
        let line = match entry {
            TraceEntry::Called { caller: Caller { number, .. }, call, subject, .. } => {
                let line = format!("{call} {subject}");
                self.calls.insert(*number, line.clone());
                line
            }
            TraceEntry::Answered { caller: Caller { number, .. }, outcome } => {
                let call = self.calls.remove(number).unwrap_or_default();
                format!("{call} {outcome}")
            }
            TraceEntry::Container { target, change } => {
                let name = format!("{}#{}", target.name, target.attempt);
                self.names.insert(target.id.clone(), name.clone());
                format!("{name} {change}")
            }
            TraceEntry::Sandbox { target, change } => {
                self.names.insert(target.id.clone(), format!("sandbox#{}", target.attempt));
                format!("sandbox#{} {change}", target.attempt)
            }
            TraceEntry::Cluster { change, .. } => format!("object {change}"),
            _ => return,
        };
        self.lines.push((at.as_secs(), line));
    }
}
