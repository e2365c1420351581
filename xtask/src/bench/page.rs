//! Writes the table of figures, and docs/performance.md around it.

use std::fmt::Write;

use super::figures::Results;
use super::subject::BenchSubject;
use super::targets::{Target, TargetRow, Unit, rows};

const HEAD: &str = "# Performance

The runtime alone, the Go kubelet and Oarsman (built for release), one after the other on the same containerd, API server and machine,
with the same pods, as a watch at the API server sees them. Written by `cargo xtask bench`, which keeps its figures in performance.json:
do not edit this page. `--quick` tries it in a minute or two and keeps nothing; `--only floor go` measures some anew,
`--part probes` one part.

- Pods name their node: the scheduler is not measured. Their one container waits and ends at once when asked to.
- \"With volumes\" is with a service account token, a configMap, a secret and an emptyDir.
- Pods come one after the other with a random pause of up to a second, or all at once.
- The runtime alone is asked for a pod's sandbox and container by the same CRI calls with no kubelet. For pods all at once it comes with
  the API writes of an agent: two status patches, three events and, with volumes, a token up to Running; an event, a patch and the last
  delete at the end.
- CPU is in percent of one processor. That of containerd has its shims with it.
- Pods with probes have both: an HTTP readiness probe and a TCP liveness probe. The containers count the HTTP probes that they got.
- All metrics are `/metrics`, `/metrics/cadvisor`, `/metrics/resource`, `/metrics/probes`, `/metrics/slis` and `/stats/summary`, read through
  the API server, for five minutes.
";

/// To be rewritten whenever the figures are.
const WHY: &str = "What is not reached yet, and why as far as it is known:

- Start of one pod: after the runtime's work the agent looks at the pod once, and one status write brings the news to the watch; before it, the
  pod comes by the watch, its sandbox is looked at, and its directories and cgroups are made. With volumes a token has to be asked for,
  too, which the API server refuses until its authorizer knows of the binding.
- 100 pods at once with volumes: the processors are the bound, and the table tells who has them. A pod that takes longer than half a second
  to start is told of up to three times instead of twice.
- Memory: beside the program itself it is pods in the types of Kubernetes' API, which have room for every kind of volume in each volume.
  There are three copies of each pod: the watch's, the supervisor's, and the worker's if its status has changed since. What it refers to, what
  was seen of it and what was told come on top.
- CPU at rest: the figure is older than the relist that reads no pod again whose worker has read what was listed. Before, the first relist
  after many pods had started read all of them, within the minute that was measured.
";

/// The whole page.
pub(super) fn page(results: &Results) -> String {
    let mut text = HEAD.to_owned();
    text.push('\n');
    text.push_str(&table(results));
    text.push('\n');
    text.push_str(WHY);
    text.push_str("\nMeasured with:\n\n");
    for (bench_subject, figures) in &results.0 {
        // Writing to a string does not fail; here and below.
        writeln!(text, "- {}: {}", bench_subject.shown(), figures.version).ok();
    }
    text
}

/// The table alone.
pub(super) fn table(results: &Results) -> String {
    let mut text = String::from("| |");
    for bench_subject in BenchSubject::ALL {
        write!(text, " {} |", bench_subject.shown()).ok();
    }
    text.push_str(" Oarsman : Go | target | reached |\n|---|---|---|---|---|---|---|\n");
    for row in rows(results) {
        writeln!(text, "{}", line(&row)).ok();
    }
    text
}

fn line(row: &TargetRow) -> String {
    let value = |value: Option<f64>| value.map_or_else(String::new, |value| shown(value, row.unit));
    let [floor, go, ours] = row.values.map(value);
    let ratio = row.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    let target = row.target.map(|target| wanted(target, row)).unwrap_or_default();
    let reached = match row.is_reached() {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    };
    format!("| {} | {floor} | {go} | {ours} | {ratio} | {target} | {reached} |", row.what)
}

fn wanted(target: Target, row: &TargetRow) -> String {
    let rule = match target {
        Target::AboveFloor(seconds) => format!("runtime + {:.0} ms", seconds * 1000.0),
        Target::OfFloor(times) => format!("{times} of the runtime"),
        Target::OfGo(times) => format!("{times} of Go"),
    };
    match row.bound() {
        Some(bound) => format!("{} ({rule})", shown(bound, row.unit)),
        None => rule,
    }
}

fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds => format!("{value:.2} s"),
        Unit::Mebibytes => format!("{value:.1} MiB"),
        Unit::Percent => format!("{value:.2} %"),
        Unit::Count => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Figures, Idle, Single, Spread};
    use super::*;

    fn figures(start: f64, pss: Option<f64>) -> Figures {
        let start = Spread { p50: start, p90: start * 2.0, count: 3 };
        let idle = Idle { pods: 100, pss_mib: pss, cpu: pss.map(|_| 1.0), runtime_cpu: 0.0 };
        Figures { plain: Single { start, stop: start }, idle: vec![idle], ..Figures::default() }
    }

    #[test]
    fn the_table_names_each_target_and_whether_it_is_reached() {
        let mut results = Results::default();
        results.0.insert(BenchSubject::Floor, figures(0.2, None));
        results.0.insert(BenchSubject::Go, figures(0.3, Some(200.0)));
        results.0.insert(BenchSubject::Oarsman, figures(0.21, Some(50.0)));
        let table = table(&results);
        for line in [
            "| | runtime alone | Go kubelet | Oarsman | Oarsman : Go | target | reached |",
            "| create to Running, p50 | 0.20 s | 0.30 s | 0.21 s | 0.70 | 0.22 s (runtime + 20 ms) | yes |",
            "| create to Running, p90 | 0.40 s | 0.60 s | 0.42 s | 0.70 |  |  |",
            "| memory of the agent (PSS), 100 pods at rest |  | 200.0 MiB | 50.0 MiB | 0.25 | 40.0 MiB (0.2 of Go) | no |",
        ] {
            assert!(table.lines().any(|it| it == line), "no line {line:?} in:\n{table}");
        }
    }

    #[test]
    fn what_was_not_measured_is_left_empty() {
        let mut results = Results::default();
        results.0.insert(BenchSubject::Go, figures(0.3, Some(200.0)));
        let page = page(&results);
        let line = "| delete to gone, p50 |  | 0.30 s |  |  | runtime + 50 ms |  |";
        assert!(page.lines().any(|it| it == line), "{page}");
    }
}
