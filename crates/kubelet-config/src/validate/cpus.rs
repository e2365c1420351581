//! Validation of the CPU, memory and topology managers.

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;
use crate::field_path::FieldPath;
use crate::suggestion::suggestion;

const CPU_OPTIONS: [&str; 6] = [
    "full-pcpus-only",
    "distribute-cpus-across-numa",
    "align-by-socket",
    "distribute-cpus-across-cores",
    "strict-cpu-reservation",
    "prefer-align-cpus-by-uncorecache",
];
const TOPOLOGY_OPTIONS: [&str; 2] = ["prefer-closest-numa-nodes", "max-allowable-numa-nodes"];

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let cpu = kubelet.cpu_manager_policy_options.keys();
    let topology = kubelet.topology_manager_policy_options.keys();
    options("cpuManagerPolicyOptions", cpu, &CPU_OPTIONS, found);
    options("topologyManagerPolicyOptions", topology, &TOPOLOGY_OPTIONS, found);
    let cpus = &kubelet.reserved_system_cpus;
    if !cpus.is_empty() && !is_list(cpus) {
        found.wrong(
            "reservedSystemCPUs",
            format!("{cpus:?} is no list of CPUs; write numbers and ranges, such as 0-2,4"),
        );
    }
}

fn options<'o>(
    path: &str,
    given: impl Iterator<Item = &'o String>,
    known: &[&'static str],
    found: &mut ProblemCollector,
) {
    for option in given.filter(|option| !known.contains(&option.as_str())) {
        let meant = suggestion(option, known.iter().copied());
        found.wrong_at(
            FieldPath::at(path).key(option),
            format!("is no option of this policy{meant}"),
        );
    }
}

/// Numbers and ascending ranges.
fn is_list(text: &str) -> bool {
    text.split(',').all(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        matches!((from.trim().parse::<u32>(), to.trim().parse::<u32>()), (Ok(from), Ok(to)) if from <= to)
    })
}
