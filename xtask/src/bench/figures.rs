//! The figures of the bench, and their file.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::subject::BenchSubject;
use super::workload::WorkloadPart;

/// The figures of all subjects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Results(pub(super) BTreeMap<BenchSubject, Figures>);

/// The figures of one subject.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Figures {
    /// The version that its program prints.
    pub(super) version: String,
    /// From the start of the agent to the node being Ready, in seconds.
    pub(super) ready: Option<f64>,
    /// Pods one after the other, without and with volumes.
    pub(super) plain: Single,
    pub(super) volumes: Single,
    /// Pods all at once.
    pub(super) bursts: Vec<Burst>,
    /// Without any work.
    pub(super) idle: Vec<Idle>,
    pub(super) restart: Option<Restart>,
    /// Pods with probes; older figures do not have it.
    #[serde(default)]
    pub(super) probes: Option<Probes>,
    /// Pods whose metrics are scraped; older figures do not have it.
    #[serde(default)]
    pub(super) scrapes: Option<Scrapes>,
}

/// What scrapes of all metrics cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Scrapes {
    pub(super) pods: usize,
    /// The agent's share of one processor, in percent.
    pub(super) cpu: f64,
    /// The size of all answers together.
    pub(super) mib: f64,
}

/// What probes cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Probes {
    pub(super) pods: usize,
    /// The agent's share of one processor, in percent.
    pub(super) cpu: f64,
    /// HTTP probes that reached a container, in a second.
    pub(super) asked: f64,
}

/// Pods one after the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Single {
    /// From create to Running.
    pub(super) start: Spread,
    /// From delete to gone.
    pub(super) stop: Spread,
}

/// Durations in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Spread {
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) count: usize,
}

/// Pods all at once: seconds until the last one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Burst {
    pub(super) pods: usize,
    pub(super) with_volumes: bool,
    /// From the first create to the last one Running.
    pub(super) running: f64,
    /// From the first delete to the last one gone.
    pub(super) gone: f64,
    /// The processor time of both; older figures do not have it.
    pub(super) cpu: Option<Cpu>,
}

/// Processor time by program, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Cpu {
    pub(super) agent: Option<f64>,
    /// The control plane.
    pub(super) cluster: f64,
    /// All programs of the machine, and the kernel.
    pub(super) machine: f64,
}

/// The costs of a node without work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Idle {
    pub(super) pods: usize,
    /// The agent's memory, with its share of what it has in common with others.
    pub(super) pss_mib: Option<f64>,
    /// The agent's share of one processor, in percent.
    pub(super) cpu: Option<f64>,
    /// That of containerd and its shims.
    pub(super) runtime_cpu: f64,
}

/// The agent ends and starts again while its pods run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Restart {
    pub(super) pods: usize,
    /// From its start until a pod that was created at that moment runs, in seconds.
    pub(super) running: f64,
    /// How often a pod was seen to change between ready and not ready.
    pub(super) flips: usize,
    /// How often a container was seen to be restarted.
    pub(super) restarts: u64,
}

impl Spread {
    /// The median and the 90th percentile.
    pub(super) fn of(taken: &[Duration]) -> Self {
        let mut taken = taken.to_vec();
        taken.sort();
        let at = |percent: usize| {
            let rank = (taken.len() * percent).div_ceil(100).saturating_sub(1);
            taken.get(rank).map_or(0.0, Duration::as_secs_f64)
        };
        Self { p50: at(50), p90: at(90), count: taken.len() }
    }
}

impl Figures {
    /// Takes over one part of newer figures.
    pub(super) fn take(&mut self, part: WorkloadPart, newer: Self) {
        match part {
            WorkloadPart::Singles => (self.plain, self.volumes) = (newer.plain, newer.volumes),
            WorkloadPart::Bursts => self.bursts = newer.bursts,
            WorkloadPart::Rest => (self.idle, self.restart) = (newer.idle, newer.restart),
            WorkloadPart::Probes => self.probes = newer.probes,
            WorkloadPart::Scrapes => self.scrapes = newer.scrapes,
        }
        self.version = newer.version;
    }
}

impl Results {
    /// The kept figures; empty at first.
    pub(super) fn read(path: &Path) -> Result<Self> {
        match fs::read(path) {
            Ok(text) => {
                serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Writes the figures to their file.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_taken_over_and_the_others_stay() {
        let probes = Probes { pods: 100, cpu: 5.0, asked: 100.0 };
        let newer = Figures { version: "2".to_owned(), probes: Some(probes), ..Figures::default() };
        let mut kept = Figures { ready: Some(1.0), ..Figures::default() };
        kept.plain.start.count = 30;
        kept.take(WorkloadPart::Probes, newer);
        assert_eq!((kept.probes, kept.version.as_str()), (Some(probes), "2"));
        assert_eq!((kept.plain.start.count, kept.ready), (30, Some(1.0)));
    }

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let seconds = |list: &[u64]| -> Vec<Duration> {
            list.iter().map(|seconds| Duration::from_secs(*seconds)).collect()
        };
        let spread = Spread::of(&seconds(&[9, 1, 8, 2, 7, 3, 6, 4, 5, 10]));
        assert_eq!((spread.p50, spread.p90, spread.count), (5.0, 9.0, 10));
        let one = Spread::of(&seconds(&[3]));
        assert_eq!((one.p50, one.p90), (3.0, 3.0));
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
