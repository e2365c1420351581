//! Which families were compared with a second source. Every documented family is, or stands in the one table of those that are not.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use super::presence::{PRESENCE_ONLY, Presence, PresenceRow};

/// The families that were compared so far.
#[derive(Debug, Default)]
pub(super) struct SecondSources(BTreeSet<String>);

impl SecondSources {
    /// The family shows what is known.
    pub(super) fn equal(&mut self, family: &str, shown: f64, known: f64) -> Result<()> {
        self.between(family, shown, known, known)
    }

    /// The family shows something between what was known before and after.
    pub(super) fn between(&mut self, family: &str, shown: f64, low: f64, high: f64) -> Result<()> {
        ensure!((low..=high).contains(&shown), "{family} is {shown}, not {low} to {high}");
        self.0.insert(family.to_owned());
        Ok(())
    }

    /// The family has no series where its second source has nothing to tell.
    pub(super) fn absent(&mut self, family: &str, shown: Option<f64>) -> Result<()> {
        ensure!(shown.is_none(), "{family} shows {shown:?}, and there is nothing to show");
        self.0.insert(family.to_owned());
        Ok(())
    }

    /// Checks that every documented family was compared or has a row in the table, and is shown with its type as the row says.
    pub(super) fn finish(
        &self,
        documented: &BTreeMap<String, &'static str>,
        shown: &BTreeMap<String, String>,
    ) -> Result<()> {
        let rows: BTreeMap<&str, &PresenceRow> =
            PRESENCE_ONLY.iter().map(|row| (row.family, row)).collect();
        let without: Vec<&String> = documented
            .keys()
            .filter(|family| !self.0.contains(*family) && !rows.contains_key(family.as_str()))
            .collect();
        ensure!(without.is_empty(), "neither compared nor in the table: {without:#?}");
        let twice: Vec<&&str> = rows.keys().filter(|family| self.0.contains(**family)).collect();
        ensure!(twice.is_empty(), "compared, and in the table of those that are not: {twice:?}");
        for (family, row) in &rows {
            ensure!(documented.contains_key(*family), "{family} is not documented");
            let is_right = match row.presence {
                Presence::Shown => shown.contains_key(*family),
                Presence::Absent => !shown.contains_key(*family),
                Presence::ByMachine => true,
            };
            ensure!(is_right, "{family} is not {:?}: {}", row.presence, row.reason);
        }
        for (family, kind) in shown {
            let known = documented.get(family);
            ensure!(known == Some(&kind.as_str()), "{family} is a {kind}, documented as {known:?}");
        }
        Ok(())
    }
}
