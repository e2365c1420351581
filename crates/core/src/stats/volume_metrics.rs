//! The families of `/metrics` about volumes of claims.

use std::collections::BTreeMap;

use super::file_systems::FileSystemStats;
use super::snapshot::MeasuredClaim;
use crate::exposition::{Exposition, MetricKind};
use crate::ids::FullName;

/// The name of a family, what it tells, and where its value is.
type VolumeFamily = (&'static str, &'static str, fn(&FileSystemStats) -> u64);

const FAMILIES: [VolumeFamily; 6] = [
    ("kubelet_volume_stats_capacity_bytes", "The size of the volume.", |fs| fs.capacity),
    ("kubelet_volume_stats_available_bytes", "Bytes that can be used.", |fs| fs.available),
    ("kubelet_volume_stats_used_bytes", "Bytes that are used.", |fs| fs.used),
    ("kubelet_volume_stats_inodes", "All inodes of the volume.", |fs| fs.inodes),
    ("kubelet_volume_stats_inodes_free", "Inodes that are free.", |fs| fs.inodes_free),
    ("kubelet_volume_stats_inodes_used", "Inodes that are used.", FileSystemStats::inodes_used),
];

/// Writes the sizes of claims. A claim that several pods use is written once.
pub fn write_volume_metrics(claims: &[MeasuredClaim], out: &mut Exposition) {
    let by_claim: BTreeMap<&FullName, &FileSystemStats> =
        claims.iter().rev().map(|measured| (&measured.claim, &measured.fs)).collect();
    for (name, help, value) in FAMILIES {
        let mut family = out.family(name, MetricKind::Gauge, help);
        for (FullName { name, namespace }, fs) in &by_claim {
            let labels = [("namespace", namespace.as_str()), ("persistentvolumeclaim", name)];
            family.sample(&labels, value(fs) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::strict;

    fn claim(name: &str, capacity: u64) -> MeasuredClaim {
        let fs = FileSystemStats {
            capacity,
            available: 60,
            used: 40,
            inodes: 9,
            inodes_free: 2,
            ..FileSystemStats::default()
        };
        let claim = FullName { name: name.to_owned(), namespace: "shop".to_owned() };
        MeasuredClaim { volume: "data".to_owned(), claim, fs }
    }

    #[test]
    fn every_claim_has_its_sizes_once() {
        let mut out = Exposition::default();
        write_volume_metrics(&[claim("db", 110), claim("web", 500), claim("db", 110)], &mut out);
        let values = strict::read(&out.into_text()).unwrap();
        let rows = [
            ("capacity_bytes", "db", 110.0),
            ("available_bytes", "db", 60.0),
            ("used_bytes", "db", 40.0),
            ("inodes", "db", 9.0),
            ("inodes_free", "db", 2.0),
            ("inodes_used", "db", 7.0),
            ("capacity_bytes", "web", 500.0),
        ];
        for (family, name, value) in rows {
            let series = format!(
                "kubelet_volume_stats_{family}{{namespace=\"shop\",persistentvolumeclaim=\"{name}\"}}"
            );
            assert_eq!(values.get(&series), Some(&value), "{series}");
        }
        assert_eq!(values.len(), 12);
    }
}
