//! What a pod holds on the node's disk beside the writable layers of its containers.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::Add;

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod};

use crate::pod::PodExt;
use crate::quantity::Quantity;

/// Space and inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Bytes that are allocated, which are fewer than a file is long where it has holes.
    pub bytes: u64,
    /// Files, directories and links.
    pub inodes: u64,
}

impl Add for DiskUsage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
        }
    }
}

impl Sum for DiskUsage {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

/// One emptyDir of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyDirUsage {
    /// The name of the volume.
    pub volume: String,
    /// What it holds.
    pub usage: DiskUsage,
    /// Its `sizeLimit` in bytes, if it has one.
    pub size_limit: Option<u64>,
    /// Whether it is on disk, and not in memory.
    pub is_on_disk: bool,
}

impl EmptyDirUsage {
    /// Whether it holds more than it may.
    pub fn is_over_limit(&self) -> bool {
        self.size_limit.is_some_and(|limit| self.usage.bytes > limit)
    }
}

/// The files that the agent and the runtime have made for a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFileUsage {
    /// Its hosts file.
    pub hosts: DiskUsage,
    /// The termination messages of its containers.
    pub termination_messages: DiskUsage,
    /// The logs of each container, rotated ones and those of earlier starts too.
    pub logs: BTreeMap<String, DiskUsage>,
}

impl PodFileUsage {
    /// All of them together.
    pub fn total(&self) -> DiskUsage {
        let logs: DiskUsage = self.logs.values().copied().sum();
        self.hosts + self.termination_messages + logs
    }
}

/// The emptyDir volumes that containers of a pod mount.
pub fn empty_dirs(pod: &Pod) -> Vec<(&str, &EmptyDirVolumeSource)> {
    let mounted = pod.mounted_volumes();
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let used = volumes.iter().filter(|volume| mounted.contains(&volume.name));
    used.filter_map(|volume| Some((volume.name.as_str(), volume.empty_dir.as_ref()?))).collect()
}

/// The `sizeLimit` of an emptyDir in bytes. One of zero is none, as with the Go kubelet.
pub fn size_limit(source: &EmptyDirVolumeSource) -> Option<u64> {
    let text = &source.size_limit.as_ref()?.0;
    let bytes = Quantity::parse(text).ok()?.units();
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_summed_over_all_files_of_a_pod() {
        let usage = |bytes, inodes| DiskUsage { bytes, inodes };
        let logs = [("a", usage(4096, 2)), ("b", usage(8192, 3))];
        let files = PodFileUsage {
            hosts: usage(4096, 1),
            termination_messages: usage(0, 4),
            logs: logs.into_iter().map(|(name, usage)| (name.to_owned(), usage)).collect(),
        };
        assert_eq!(files.total(), usage(16384, 10));
        assert_eq!(usage(u64::MAX, 1) + usage(1, 1), usage(u64::MAX, 2));
    }

    #[test]
    fn an_empty_dir_is_over_its_limit_when_it_holds_more() {
        let rows = [
            (None, 1 << 40, false),
            (Some("1Ki"), 1024, false),
            (Some("1Ki"), 1025, true),
            (Some("0"), 5, false),
        ];
        for (limit, bytes, is_over) in rows {
            let source = serde_json::from_value(json!({ "sizeLimit": limit })).unwrap();
            let usage = EmptyDirUsage {
                volume: "v".to_owned(),
                usage: DiskUsage { bytes, inodes: 1 },
                size_limit: size_limit(&source),
                is_on_disk: true,
            };
            assert_eq!(usage.is_over_limit(), is_over, "{limit:?} {bytes}");
        }
    }

    #[test]
    fn only_volumes_that_are_mounted_are_counted() {
        let volumes = json!([{ "name": "a", "emptyDir": {} }, { "name": "b", "emptyDir": {} }, { "name": "c", "hostPath": { "path": "/" } }]);
        let mounts =
            json!([{ "name": "a", "mountPath": "/a" }, { "name": "c", "mountPath": "/c" }]);
        let spec =
            json!({ "containers": [{ "name": "m", "volumeMounts": mounts }], "volumes": volumes });
        let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
        let names: Vec<_> = empty_dirs(&pod).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a"]);
    }
}
