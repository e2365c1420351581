//! Limits of a container.

use std::collections::BTreeMap;

use oarsman_cri_types::v1::{HugepageLimit, LinuxContainerResources};
use oci_spec::runtime::{
    LinuxCpu, LinuxCpuBuilder, LinuxDeviceCgroup, LinuxHugepageLimitBuilder, LinuxMemory,
    LinuxMemoryBuilder, LinuxResources, LinuxResourcesBuilder,
};
use serde::{Deserialize, Serialize};

use super::SpecError;

/// What the control groups of this machine can limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgroupAbilities {
    /// Whether swap is counted.
    pub(crate) swap: bool,
    /// Whether huge pages can be limited.
    pub(crate) hugepages: bool,
    /// Whether there is only the tree of v2.
    pub(crate) is_unified: bool,
}

/// Limits as they were asked for, kept so that an update that leaves one out keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredResources {
    pub(crate) cpu_period: i64,
    pub(crate) cpu_quota: i64,
    pub(crate) cpu_shares: i64,
    pub(crate) memory: i64,
    pub(crate) memory_swap: i64,
    pub(crate) cpuset_cpus: String,
    pub(crate) cpuset_mems: String,
    pub(crate) oom_score_adj: i64,
    /// Limits of huge pages, by their size.
    #[serde(default)]
    pub(crate) hugepages: BTreeMap<String, u64>,
    /// Files of the control group on v2, with what they hold.
    #[serde(default)]
    pub(crate) unified: BTreeMap<String, String>,
}

impl StoredResources {
    pub(crate) fn of(asked: &LinuxContainerResources) -> Self {
        Self {
            cpu_period: asked.cpu_period,
            cpu_quota: asked.cpu_quota,
            cpu_shares: asked.cpu_shares,
            memory: asked.memory_limit_in_bytes,
            memory_swap: asked.memory_swap_limit_in_bytes,
            cpuset_cpus: asked.cpuset_cpus.clone(),
            cpuset_mems: asked.cpuset_mems.clone(),
            oom_score_adj: asked.oom_score_adj,
            hugepages: hugepages(&asked.hugepage_limits),
            unified: asked.unified.clone(),
        }
    }

    /// What an update asks for replaces what was there.
    pub(crate) fn updated(&self, asked: &LinuxContainerResources) -> Self {
        let new = Self::of(asked);
        let number = |new: i64, old: i64| if new == 0 { old } else { new };
        let text = |new: String, old: &String| if new.is_empty() { old.clone() } else { new };
        Self {
            cpu_period: number(new.cpu_period, self.cpu_period),
            cpu_quota: number(new.cpu_quota, self.cpu_quota),
            cpu_shares: number(new.cpu_shares, self.cpu_shares),
            memory: number(new.memory, self.memory),
            memory_swap: number(new.memory_swap, self.memory_swap),
            cpuset_cpus: text(new.cpuset_cpus, &self.cpuset_cpus),
            cpuset_mems: text(new.cpuset_mems, &self.cpuset_mems),
            oom_score_adj: number(new.oom_score_adj, self.oom_score_adj),
            hugepages: merged(&self.hugepages, new.hugepages),
            unified: merged(&self.unified, new.unified),
        }
    }

    /// As CRI tells them in a status.
    pub(crate) fn shown(&self) -> LinuxContainerResources {
        LinuxContainerResources {
            cpu_period: self.cpu_period,
            cpu_quota: self.cpu_quota,
            cpu_shares: self.cpu_shares,
            memory_limit_in_bytes: self.memory,
            memory_swap_limit_in_bytes: self.memory_swap,
            cpuset_cpus: self.cpuset_cpus.clone(),
            cpuset_mems: self.cpuset_mems.clone(),
            oom_score_adj: self.oom_score_adj,
            hugepage_limits: self.hugepages.iter().map(limit).collect(),
            unified: self.unified.clone(),
        }
    }
}

fn hugepages(limits: &[HugepageLimit]) -> BTreeMap<String, u64> {
    limits.iter().map(|limit| (limit.page_size.clone(), limit.limit)).collect()
}

fn limit((page_size, limit): (&String, &u64)) -> HugepageLimit {
    HugepageLimit { page_size: page_size.clone(), limit: *limit }
}

fn merged<V: Clone>(old: &BTreeMap<String, V>, new: BTreeMap<String, V>) -> BTreeMap<String, V> {
    old.clone().into_iter().chain(new).collect()
}

/// The limits of a spec. Zero and empty mean that nothing is asked for.
pub(crate) fn resources(
    asked: &LinuxContainerResources,
    devices: Vec<LinuxDeviceCgroup>,
    abilities: CgroupAbilities,
) -> Result<LinuxResources, SpecError> {
    let mut all = LinuxResourcesBuilder::default();
    if !devices.is_empty() {
        all = all.devices(devices);
    }
    if let Some(memory) = memory(asked, abilities)? {
        all = all.memory(memory);
    }
    if let Some(cpu) = cpu(asked)? {
        all = all.cpu(cpu);
    }
    if abilities.hugepages {
        let mut limits = Vec::new();
        for limit in &asked.hugepage_limits {
            let bytes = i64::try_from(limit.limit).unwrap_or(i64::MAX);
            let limit = LinuxHugepageLimitBuilder::default().page_size(limit.page_size.clone());
            limits.push(limit.limit(bytes).build()?);
        }
        all = all.hugepage_limits(limits);
    }
    let mut all = all.build()?;
    if abilities.is_unified && !asked.unified.is_empty() {
        all.set_unified(Some(asked.unified.clone().into_iter().collect()));
    }
    Ok(all)
}

fn memory(
    asked: &LinuxContainerResources,
    abilities: CgroupAbilities,
) -> Result<Option<LinuxMemory>, SpecError> {
    if asked.memory_limit_in_bytes == 0 {
        return Ok(None);
    }
    let memory = LinuxMemoryBuilder::default().limit(asked.memory_limit_in_bytes);
    let swap = Some(asked.memory_swap_limit_in_bytes).filter(|swap| *swap != 0 && abilities.swap);
    let memory = match swap {
        Some(swap) => memory.swap(swap),
        None => memory,
    };
    Ok(Some(memory.build()?))
}

fn cpu(asked: &LinuxContainerResources) -> Result<Option<LinuxCpu>, SpecError> {
    let positive =
        |field, value: i64| u64::try_from(value).map_err(|_| SpecError::Resource { field, value });
    let mut cpu = LinuxCpuBuilder::default();
    let mut is_set = false;
    if asked.cpu_shares != 0 {
        (cpu, is_set) = (cpu.shares(positive("cpu_shares", asked.cpu_shares)?), true);
    }
    if asked.cpu_quota != 0 {
        (cpu, is_set) = (cpu.quota(asked.cpu_quota), true);
    }
    if asked.cpu_period != 0 {
        (cpu, is_set) = (cpu.period(positive("cpu_period", asked.cpu_period)?), true);
    }
    if !asked.cpuset_cpus.is_empty() {
        (cpu, is_set) = (cpu.cpus(asked.cpuset_cpus.clone()), true);
    }
    if !asked.cpuset_mems.is_empty() {
        (cpu, is_set) = (cpu.mems(asked.cpuset_mems.clone()), true);
    }
    Ok(if is_set { Some(cpu.build()?) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> LinuxContainerResources {
        LinuxContainerResources {
            cpu_shares: 512,
            cpu_quota: 50_000,
            cpu_period: 100_000,
            memory_limit_in_bytes: 64 << 20,
            memory_swap_limit_in_bytes: 64 << 20,
            hugepage_limits: vec![HugepageLimit { page_size: "2MB".to_owned(), limit: 0 }],
            ..LinuxContainerResources::default()
        }
    }

    #[test]
    fn limits_are_set_as_far_as_the_machine_has_them() {
        let none = CgroupAbilities::default();
        let found = resources(&asked(), Vec::new(), none).unwrap();
        let memory = found.memory().unwrap();
        assert_eq!((memory.limit(), memory.swap()), (Some(64 << 20), None));
        let cpu = found.cpu().as_ref().unwrap();
        assert_eq!(
            (cpu.shares(), cpu.quota(), cpu.period()),
            (Some(512), Some(50_000), Some(100_000))
        );
        assert!(found.hugepage_limits().is_none());
        let all = CgroupAbilities { swap: true, hugepages: true, is_unified: false };
        let found = resources(&asked(), Vec::new(), all).unwrap();
        assert_eq!(found.memory().unwrap().swap(), Some(64 << 20));
        assert_eq!(found.hugepage_limits().as_ref().unwrap().len(), 1);
    }

    #[test]
    fn nothing_is_limited_that_was_not_asked_for() {
        let none = LinuxContainerResources::default();
        let found = resources(&none, Vec::new(), CgroupAbilities::default()).unwrap();
        assert_eq!((found.memory().is_none(), found.cpu().is_none()), (true, true));
        let negative = LinuxContainerResources { cpu_shares: -1, ..none };
        assert!(resources(&negative, Vec::new(), CgroupAbilities::default()).is_err());
    }

    #[test]
    fn an_update_keeps_what_it_does_not_name() {
        let before = StoredResources::of(&asked());
        let change = LinuxContainerResources {
            cpu_quota: -1,
            cpuset_cpus: "0".to_owned(),
            unified: [("memory.high".to_owned(), "max".to_owned())].into(),
            ..LinuxContainerResources::default()
        };
        let after = before.updated(&change);
        assert_eq!((after.hugepages["2MB"], after.unified["memory.high"].as_str()), (0, "max"));
        assert_eq!((after.cpu_quota, after.cpuset_cpus.as_str()), (-1, "0"));
        assert_eq!((after.memory, after.cpu_shares), (before.memory, before.cpu_shares));
        assert_eq!(StoredResources::of(&after.shown()), after);
    }
}
