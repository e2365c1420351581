//! What the world saw of a scenario, as lines that name containers rather than ids.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_world::trace::{Caller, Entry};

use crate::Testimony;

/// Lines in order with the second they fall into (timers are a little late by nature), such as `StopContainer main#0 30s`, `main#0 started` or `ExecSync main#0 ["/actor"] is fine`.
#[derive(Clone, Debug)]
pub struct Tale {
    lines: Vec<(u64, String)>,
}

impl Tale {
    /// Everything about containers, their sandboxes and the calls that concern them.
    pub fn of(life: &Testimony) -> Self {
        let mut teller = Teller::default();
        life.records.iter().for_each(|record| teller.hear(record.at, &record.entry));
        let Teller { names, mut lines, .. } = teller;
        for (_, line) in &mut lines {
            // A call that makes a container comes before anybody knows its id, and none names it.
            *line = names.iter().fold(line.clone(), |line, (id, name)| line.replace(id, name));
        }
        Self { lines }
    }

    /// Every line that begins with this, and when.
    pub fn all<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = (u64, &'a str)> {
        let those = self.lines.iter().filter(move |(_, line)| line.starts_with(beginning));
        those.map(|(at, line)| (*at, line.as_str()))
    }

    /// When a line that begins with this came first.
    pub fn when(&self, beginning: &str) -> Option<u64> {
        self.all(beginning).next().map(|(at, _)| at)
    }

    /// The first of these, in this order, that does not come after the one before it: each is the beginning of a line.
    pub fn out_of_order<'a>(&self, beginnings: &[&'a str]) -> Option<&'a str> {
        let mut lines = self.lines.iter();
        let mut follows = |beginning: &&&str| !lines.any(|(_, line)| line.starts_with(**beginning));
        beginnings.iter().find(&mut follows).copied()
    }
}

#[derive(Default)]
struct Teller {
    /// Names of containers and sandboxes by id.
    names: BTreeMap<String, String>,
    /// Calls under way.
    calls: BTreeMap<u64, String>,
    lines: Vec<(u64, String)>,
}

impl Teller {
    fn hear(&mut self, at: Duration, entry: &Entry) {
        let line = match entry {
            Entry::Called { caller: Caller { number, .. }, call, subject, .. } => {
                let line = format!("{call} {subject}");
                self.calls.insert(*number, line.clone());
                line
            }
            Entry::Answered { caller: Caller { number, .. }, outcome } => {
                let call = self.calls.remove(number).unwrap_or_default();
                format!("{call} {outcome}")
            }
            Entry::Container { who, change } => {
                let name = format!("{}#{}", who.name, who.attempt);
                self.names.insert(who.id.clone(), name.clone());
                format!("{name} {change}")
            }
            Entry::Sandbox { who, change } => {
                self.names.insert(who.id.clone(), format!("sandbox#{}", who.attempt));
                format!("sandbox#{} {change}", who.attempt)
            }
            Entry::Cluster { change, .. } => format!("object {change}"),
            _ => return,
        };
        self.lines.push((at.as_secs(), line));
    }
}
