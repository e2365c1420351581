//! What an emptyDir lies on, and how that is mounted. A pod's author writes the medium as text; none of it gets to mount(2) but numbers
//! that were understood.

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod};
use oarsman_core::quantity::Quantity;
use oarsman_core::resources::pod_limits;

/// What the medium of huge pages is called, and one with the size of its pages.
const HUGE_PAGES: &str = "HugePages";
const HUGE_PAGES_PREFIX: &str = "HugePages-";
/// No page of any machine is smaller.
const SMALLEST_PAGE: u64 = 4096;

/// What an emptyDir lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageMedium {
    /// The disk that the root directory is on.
    Default,
    Memory,
    /// Huge pages of so many bytes; the usual ones when none are named.
    HugePages(Option<u64>),
}

impl StorageMedium {
    /// None for a medium that is not known.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "" => Some(Self::Default),
            "Memory" => Some(Self::Memory),
            HUGE_PAGES => Some(Self::HugePages(None)),
            huge => Some(Self::HugePages(Some(page_size(huge.strip_prefix(HUGE_PAGES_PREFIX)?)?))),
        }
    }

    /// The type of the file system, and its options; none for what is not mounted.
    pub(crate) fn mount_options(
        self,
        pod: &Pod,
        source: &EmptyDirVolumeSource,
    ) -> Option<(&'static str, String)> {
        let (fs_type, number) = match self {
            Self::Default => return None,
            Self::Memory => ("tmpfs", size(pod, source).map(|bytes| format!(",size={bytes}"))),
            Self::HugePages(page) => ("hugetlbfs", page.map(|bytes| format!(",pagesize={bytes}"))),
        };
        Some((fs_type, format!("mode=0777{}", number.unwrap_or_default())))
    }
}

/// The bytes of a page as the API writes it, such as `2Mi`.
fn page_size(text: &str) -> Option<u64> {
    let bytes = u64::try_from(Quantity::parse(text).ok()?.units()).ok()?;
    (bytes >= SMALLEST_PAGE && bytes.is_power_of_two()).then_some(bytes)
}

/// No more than the volume's own limit, and no more than the pod may use.
fn size(pod: &Pod, source: &EmptyDirVolumeSource) -> Option<i64> {
    let own = source.size_limit.as_ref().and_then(|limit| Quantity::try_from(limit).ok());
    let of_pod = pod_limits(pod).get("memory").map(Quantity::units);
    let limits = [own.map(|limit| limit.units()), of_pod];
    limits.into_iter().flatten().filter(|bytes| *bytes > 0).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_medium_is_one_of_those_that_the_api_knows() {
        use StorageMedium::{Default, HugePages, Memory};
        let rows = [
            ("", Some(Default)),
            ("Memory", Some(Memory)),
            ("HugePages", Some(HugePages(None))),
            ("HugePages-2Mi", Some(HugePages(Some(2 << 20)))),
            ("HugePages-1Gi", Some(HugePages(Some(1 << 30)))),
            ("HugePages-2M", None),
            ("HugePages-0", None),
            ("HugePages--2Mi", None),
            ("HugePages-512", None),
            ("HugePages-2Mi,uid=0", None),
            ("HugePages2Mi", None),
            ("memory", None),
        ];
        for (text, expected) in rows {
            assert_eq!(StorageMedium::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn options_are_numbers() {
        let (pod, source) = (Pod::default(), EmptyDirVolumeSource::default());
        let options = |medium: StorageMedium| medium.mount_options(&pod, &source);
        assert_eq!(options(StorageMedium::Default), None);
        assert_eq!(options(StorageMedium::Memory), Some(("tmpfs", "mode=0777".to_owned())));
        let huge = Some(("hugetlbfs", "mode=0777,pagesize=2097152".to_owned()));
        assert_eq!(options(StorageMedium::HugePages(Some(2 << 20))), huge);
    }
}
