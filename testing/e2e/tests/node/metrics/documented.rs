//! The families that the documents list, with their types.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

const METRICS: &str = include_str!("../../../../../docs/metrics.md");
const CADVISOR: &str = include_str!("../../../../../docs/metrics-cadvisor.md");

/// All families of `/metrics`, `/metrics/probes`, `/metrics/slis` and `/metrics/cadvisor`.
pub(super) fn families() -> Result<BTreeMap<String, &'static str>> {
    let (present, _) =
        METRICS.split_once("## Families that are absent").context("metrics.md has absent ones")?;
    let mut families = BTreeMap::new();
    for row in present.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (name, kind) = cells.next().zip(cells.next()).context("a row has two cells")?;
        families.insert(name.trim_matches('`').to_owned(), kind);
    }
    let (_, cadvisor) =
        CADVISOR.split_once("## Families of /metrics/cadvisor").context("it lists families")?;
    let (cadvisor, _) = cadvisor.split_once("\n## ").context("a section follows")?;
    for row in cadvisor.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split('|').nth(1).context("a row has a cell")?;
        for name in cell.split('`').skip(1).step_by(2).filter(|name| name.contains('_')) {
            let name = name.split('{').next().unwrap_or_default();
            families.insert(name.to_owned(), kind_by_name(name));
        }
    }
    Ok(families)
}

/// cAdvisor calls counters by their ending, but for one.
fn kind_by_name(name: &str) -> &'static str {
    let is_counter = name.ends_with("_total") && name != "container_fs_inodes_total";
    if is_counter || name == "container_memory_failcnt" { "counter" } else { "gauge" }
}
