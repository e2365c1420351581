//! The targets of performance, relative to the runtime alone or the Go kubelet.

use super::figures::{Cpu, Figures, Results, Single, Spread};
use super::subject::BenchSubject;

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Mebibytes,
    Percent,
    Count,
}

/// The upper bound that we want to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// This many seconds more than the runtime alone.
    AboveFloor(f64),
    /// This many times the figure of the runtime alone.
    OfFloor(f64),
    /// This many times the figure of the Go kubelet.
    OfGo(f64),
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TargetRow {
    pub(super) what: String,
    pub(super) unit: Unit,
    /// In the order of [`BenchSubject::ALL`].
    pub(super) values: [Option<f64>; 3],
    pub(super) target: Option<Target>,
}

impl TargetRow {
    /// The ratio of our figure to the Go kubelet's.
    pub(super) fn ratio(&self) -> Option<f64> {
        let [_, go, ours] = self.values;
        Some(ours? / go.filter(|go| *go > 0.0)?)
    }

    /// The largest figure that reaches the target, when its reference is known.
    pub(super) fn bound(&self) -> Option<f64> {
        let [floor, go, _] = self.values;
        match self.target? {
            Target::AboveFloor(seconds) => Some(floor? + seconds),
            Target::OfFloor(times) => Some(floor? * times),
            Target::OfGo(times) => Some(go? * times),
        }
    }

    /// Whether our figure reaches it.
    pub(super) fn is_reached(&self) -> Option<bool> {
        Some(self.values[2]? <= self.bound()?)
    }
}

/// All rows for which a subject has a figure.
pub(super) fn rows(results: &Results) -> Vec<TargetRow> {
    let mut rows = Vec::new();
    for (kind, of) in [("", plain as fn(&Figures) -> &Single), (" with volumes", volumes)] {
        rows.extend(single(results, kind, of));
    }
    rows.extend(bursts(results));
    let ready = values(results, |figures| figures.ready);
    rows.push(row("start of the agent to node Ready".to_owned(), Unit::Seconds, ready, None));
    rows.extend(idle(results));
    rows.extend(restart(results));
    rows.extend(probes(results));
    rows.extend(scrapes(results));
    rows.retain(|row| row.values.iter().any(Option::is_some));
    rows
}

fn plain(figures: &Figures) -> &Single {
    &figures.plain
}

fn volumes(figures: &Figures) -> &Single {
    &figures.volumes
}

fn single(results: &Results, kind: &str, of: fn(&Figures) -> &Single) -> Vec<TargetRow> {
    let seconds = |what: &str, value: &dyn Fn(&Single) -> f64, target| {
        let values = values(results, |figures| Some(value(of(figures))));
        row(format!("{what}{kind}"), Unit::Seconds, values, target)
    };
    let p50 = |spread: Spread| spread.p50;
    let p90 = |spread: Spread| spread.p90;
    vec![
        seconds("create to Running, p50", &|it| p50(it.start), Some(Target::AboveFloor(0.020))),
        seconds("create to Running, p90", &|it| p90(it.start), None),
        seconds("delete to gone, p50", &|it| p50(it.stop), Some(Target::AboveFloor(0.050))),
        seconds("delete to gone, p90", &|it| p90(it.stop), None),
    ]
}

fn bursts(results: &Results) -> Vec<TargetRow> {
    let most = results.0.values().map(|figures| figures.bursts.len()).max().unwrap_or(0);
    let mut rows = Vec::new();
    for index in 0..most {
        let first = results.0.values().find_map(|figures| figures.bursts.get(index));
        let Some(first) = first else { continue };
        let kind = if first.with_volumes { " with volumes" } else { "" };
        let what = |end: &str| format!("{} pods at once{kind}, until {end}", first.pods);
        let running = values(results, |figures| Some(figures.bursts.get(index)?.running));
        let gone = values(results, |figures| Some(figures.bursts.get(index)?.gone));
        let target = Some(Target::OfFloor(1.1));
        rows.push(row(what("all are Running"), Unit::Seconds, running, target));
        rows.push(row(what("all are gone"), Unit::Seconds, gone, None));
        rows.extend(spent(results, index, &what("gone again")));
    }
    rows
}

/// The processor time of one of the bursts.
fn spent(results: &Results, index: usize, burst: &str) -> Vec<TargetRow> {
    let of = |share: fn(Cpu) -> Option<f64>| {
        values(results, |figures| share(figures.bursts.get(index)?.cpu?))
    };
    let time = |whose: &str, values| {
        row(format!("{burst}: processor time of {whose}"), Unit::Seconds, values, None)
    };
    vec![
        time("the agent", of(|cpu| cpu.agent)),
        time("the control plane", of(|cpu| Some(cpu.cluster))),
        time("the whole machine", of(|cpu| Some(cpu.machine))),
    ]
}

/// Targets are for a node with pods.
fn idle(results: &Results) -> Vec<TargetRow> {
    let most = results.0.values().map(|figures| figures.idle.len()).max().unwrap_or(0);
    let mut rows = Vec::new();
    for index in 0..most {
        let first = results.0.values().find_map(|figures| figures.idle.get(index));
        let Some(pods) = first.map(|idle| idle.pods) else { continue };
        let target = |times: f64| (pods > 0).then_some(Target::OfGo(times));
        let pss = values(results, |figures| figures.idle.get(index)?.pss_mib);
        let cpu = values(results, |figures| figures.idle.get(index)?.cpu);
        let whole = values(results, |figures| Some(figures.idle.get(index)?.runtime_cpu));
        let what = |what: &str| format!("{what}, {pods} pods at rest");
        rows.push(row(what("memory of the agent (PSS)"), Unit::Mebibytes, pss, target(0.2)));
        rows.push(row(what("CPU of the agent"), Unit::Percent, cpu, target(0.05)));
        let name = what("CPU of containerd and its shims");
        rows.push(row(name, Unit::Percent, whole, None));
        let name = what("what the agent causes of it");
        rows.push(row(name, Unit::Percent, beyond_floor(whole), target(0.1)));
    }
    rows
}

/// The difference to the runtime alone.
fn beyond_floor([floor, go, ours]: [Option<f64>; 3]) -> [Option<f64>; 3] {
    let more = |value: Option<f64>| Some((value? - floor?).max(0.0));
    [None, more(go), more(ours)]
}

fn restart(results: &Results) -> Vec<TargetRow> {
    let first = results.0.values().find_map(|figures| figures.restart);
    let Some(pods) = first.map(|restart| restart.pods) else { return Vec::new() };
    let running = values(results, |figures| Some(figures.restart?.running));
    let count = |value: usize| u32::try_from(value).ok().map(f64::from);
    let flips = values(results, |figures| count(figures.restart?.flips));
    let restarts =
        values(results, |figures| count(usize::try_from(figures.restart?.restarts).ok()?));
    let what = |what: &str| format!("restart of the agent under {pods} pods: {what}");
    vec![
        row(what("a new pod is Running"), Unit::Seconds, running, None),
        row(what("readiness flips"), Unit::Count, flips, None),
        row(what("restarts"), Unit::Count, restarts, None),
    ]
}

fn probes(results: &Results) -> Vec<TargetRow> {
    let first = results.0.values().find_map(|figures| figures.probes);
    let Some(pods) = first.map(|probes| probes.pods) else { return Vec::new() };
    let cpu = values(results, |figures| Some(figures.probes?.cpu));
    let asked = values(results, |figures| Some(figures.probes?.asked));
    let what = |what: &str| format!("{what}, {pods} pods with HTTP and TCP probes every second");
    vec![
        row(what("CPU of the agent"), Unit::Percent, cpu, Some(Target::OfGo(0.25))),
        row(what("HTTP probes a second"), Unit::Count, asked, None),
    ]
}

fn scrapes(results: &Results) -> Vec<TargetRow> {
    let first = results.0.values().find_map(|figures| figures.scrapes);
    let Some(pods) = first.map(|scrapes| scrapes.pods) else { return Vec::new() };
    let cpu = values(results, |figures| Some(figures.scrapes?.cpu));
    let size = values(results, |figures| Some(figures.scrapes?.mib));
    let what = |what: &str| format!("{what}, {pods} pods at rest and all metrics every 15 s");
    vec![
        row(what("CPU of the agent"), Unit::Percent, cpu, Some(Target::OfGo(0.1))),
        row(what("size of all answers"), Unit::Mebibytes, size, None),
    ]
}

fn values(results: &Results, of: impl Fn(&Figures) -> Option<f64>) -> [Option<f64>; 3] {
    BenchSubject::ALL.map(|bench_subject| results.0.get(&bench_subject).and_then(&of))
}

fn row(what: String, unit: Unit, values: [Option<f64>; 3], target: Option<Target>) -> TargetRow {
    TargetRow { what, unit, values, target }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_causes_what_is_more_than_the_runtime_alone() {
        assert_eq!(beyond_floor([Some(3.0), Some(5.5), Some(2.9)]), [None, Some(2.5), Some(0.0)]);
        assert_eq!(beyond_floor([None, Some(5.5), Some(2.9)]), [None; 3]);
    }

    #[test]
    fn a_target_is_judged_when_what_it_is_measured_against_is_known() {
        let with = |values, target| row(String::new(), Unit::Seconds, values, Some(target));
        let above = |floor, ours| with([floor, None, ours], Target::AboveFloor(0.02)).is_reached();
        assert_eq!(above(Some(0.2), Some(0.21)), Some(true));
        assert_eq!(above(Some(0.2), Some(0.23)), Some(false));
        assert_eq!(above(None, Some(0.23)), None);
        assert_eq!(above(Some(0.2), None), None);
        let of_go = with([None, Some(100.0), Some(20.0)], Target::OfGo(0.2));
        assert_eq!((of_go.is_reached(), of_go.ratio()), (Some(true), Some(0.2)));
        let of_floor = with([Some(10.0), Some(30.0), Some(12.0)], Target::OfFloor(1.1));
        assert_eq!(of_floor.is_reached(), Some(false));
        let free = with([None, Some(0.0), Some(1.0)], Target::OfGo(0.2));
        assert_eq!(free.ratio(), None);
    }
}
