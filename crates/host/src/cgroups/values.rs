//! Converts the values of a group to the contents of control files.

use oarsman_core::resources::{CgroupValues, CpuQuota, weight};

/// The kernel's default period.
const DEFAULT_PERIOD: u64 = 100_000;

/// The wanted content of one control file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ControlFileValue {
    pub(super) file: String,
    pub(super) text: String,
    /// The kernel rounds down to multiples of this.
    grain: u64,
}

impl ControlFileValue {
    fn new(file: impl Into<String>, value: &impl ToString) -> Self {
        Self { file: file.into(), text: value.to_string(), grain: 1 }
    }

    fn bytes(file: impl Into<String>, bytes: u64) -> Self {
        let grain = u64::try_from(rustix::param::page_size()).unwrap_or(1);
        Self { grain, ..Self::new(file, &bytes) }
    }

    /// Whether the current content is equal enough that nothing need be written.
    pub(super) fn is_met_by(&self, current: &str) -> bool {
        let current = current.trim();
        let grains = |text: &str| text.parse::<u64>().ok().map(|value| value / self.grain);
        current == self.text || grains(current).is_some_and(|now| grains(&self.text) == Some(now))
    }
}

/// The files of a v1 hierarchy with one controller.
pub(super) fn v1(controller: &str, values: &CgroupValues) -> Vec<ControlFileValue> {
    match controller {
        "cpu" => v1_cpu(values),
        "memory" => memory("memory.limit_in_bytes", values),
        "hugetlb" => hugetlb("limit_in_bytes", values),
        "pids" => pids(values),
        _ => Vec::new(),
    }
}

/// The files of one controller in the v2 hierarchy.
pub(super) fn v2(controller: &str, values: &CgroupValues) -> Vec<ControlFileValue> {
    match controller {
        "cpu" => v2_cpu(values),
        "memory" => memory("memory.max", values),
        "hugetlb" => hugetlb("max", values),
        "pids" => pids(values),
        _ => Vec::new(),
    }
}

fn v1_cpu(values: &CgroupValues) -> Vec<ControlFileValue> {
    let shares = values.shares.map(|shares| ControlFileValue::new("cpu.shares", &shares));
    let period = values.period.map(|period| ControlFileValue::new("cpu.cfs_period_us", &period));
    let quota = values.quota.map(|quota| match quota {
        CpuQuota::Unlimited => ControlFileValue::new("cpu.cfs_quota_us", &-1),
        CpuQuota::Micros(micros) => ControlFileValue::new("cpu.cfs_quota_us", &micros),
    });
    [shares, period, quota].into_iter().flatten().collect()
}

fn v2_cpu(values: &CgroupValues) -> Vec<ControlFileValue> {
    let shares = values.shares.map(|shares| ControlFileValue::new("cpu.weight", &weight(shares)));
    let period = values.period.unwrap_or(DEFAULT_PERIOD);
    let max = values.quota.map(|quota| match quota {
        CpuQuota::Unlimited => ControlFileValue::new("cpu.max", &format!("max {period}")),
        CpuQuota::Micros(micros) => ControlFileValue::new("cpu.max", &format!("{micros} {period}")),
    });
    [shares, max].into_iter().flatten().collect()
}

fn memory(file: &str, values: &CgroupValues) -> Vec<ControlFileValue> {
    values.memory_max.map(|bytes| ControlFileValue::bytes(file, bytes)).into_iter().collect()
}

fn hugetlb(suffix: &str, values: &CgroupValues) -> Vec<ControlFileValue> {
    let limit = |(size, bytes): (&String, &u64)| {
        ControlFileValue::bytes(format!("hugetlb.{size}.{suffix}"), *bytes)
    };
    values.hugetlb.iter().map(limit).collect()
}

fn pids(values: &CgroupValues) -> Vec<ControlFileValue> {
    values.pids_max.map(|limit| ControlFileValue::new("pids.max", &limit)).into_iter().collect()
}
