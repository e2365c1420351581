//! Divides the scenarios of a test binary among processes: this process runs all of them, or those that no other has taken.

use std::env;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use super::Scenario;

/// The environment variable with the directory in which processes of one test binary record which scenarios are taken.
const SHARED: &str = "OARSMAN_SCENARIOS_SHARED";
/// The environment variable that asks for scenarios that must run alone.
const ALONE: &str = "OARSMAN_SCENARIOS_ALONE";

/// The scenarios of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScenarioShare {
    All,
    /// Those that no other process has taken, by a file for each in this directory; but none that must run alone.
    Taken(PathBuf),
    /// Those that must run alone.
    Alone,
}

impl ScenarioShare {
    /// From the environment.
    pub(super) fn of_this_process() -> Self {
        if env::var_os(ALONE).is_some() {
            return Self::Alone;
        }
        env::var_os(SHARED).map_or(Self::All, |directory| Self::Taken(directory.into()))
    }

    /// Whether this process may run it.
    pub(super) fn has(&self, scenario: &Scenario) -> bool {
        match self {
            Self::All => true,
            Self::Taken(_) => !scenario.is_alone,
            Self::Alone => scenario.is_alone,
        }
    }

    /// Takes the scenario of that name; false when another process has it.
    pub(super) fn take(&self, name: &str) -> io::Result<bool> {
        let Self::Taken(directory) = self else { return Ok(true) };
        match File::create_new(directory.join(name)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        Scenario { name: "x", run: |_| Box::pin(async { Ok(()) }), is_alone: false, is_long: false }
    }

    #[test]
    fn every_scenario_is_run_once_by_processes_that_share() {
        let directory = tempfile::tempdir().unwrap();
        let share = ScenarioShare::Taken(directory.path().to_owned());
        assert!(share.take("x").unwrap());
        assert!(!share.take("x").unwrap());
        assert!(share.take("y").unwrap());
        assert!(ScenarioShare::Taken("/nowhere".into()).take("x").is_err());
    }

    #[test]
    fn scenarios_to_be_run_alone_are_run_only_by_the_process_that_asks_for_them() {
        let shared = ScenarioShare::Taken("/nowhere".into());
        let (beside, alone) = (scenario(), scenario().alone());
        let rows = [
            (&ScenarioShare::All, true, true),
            (&shared, true, false),
            (&ScenarioShare::Alone, false, true),
        ];
        for (share, has_beside, has_alone) in rows {
            assert_eq!(
                (share.has(&beside), share.has(&alone)),
                (has_beside, has_alone),
                "{share:?}"
            );
        }
        assert!(ScenarioShare::Alone.take("x").unwrap());
    }
}
