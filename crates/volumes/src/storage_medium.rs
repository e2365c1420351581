//! What an emptyDir lies on, and how that is mounted. A pod's author writes the medium as text; none of it gets to mount(2) but numbers
//! that were understood.

use oarsman_core::quantity::Quantity;

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

    /// The type of the file system, and its options; none for what is not mounted. One in memory has at most so many bytes.
    pub(crate) fn mount_options(self, size: Option<u64>) -> Option<(&'static str, String)> {
        let (fs_type, mode, number) = match self {
            Self::Default => return None,
            Self::Memory => ("tmpfs", "1777", size.map(|bytes| format!(",size={bytes}"))),
            Self::HugePages(page) => {
                ("hugetlbfs", "0777", page.map(|bytes| format!(",pagesize={bytes}")))
            }
        };
        Some((fs_type, format!("mode={mode}{}", number.unwrap_or_default())))
    }

    /// With the size of its pages: when none is named, the one that the pod asks for.
    #[must_use]
    pub(crate) fn with_page_size(self, of_pod: &[u64]) -> Self {
        match (self, of_pod) {
            (Self::HugePages(None), [only]) => Self::HugePages(Some(*only)),
            (medium, _) => medium,
        }
    }
}

/// The bytes of a page as the API writes it, such as `2Mi`.
fn page_size(text: &str) -> Option<u64> {
    let bytes = u64::try_from(Quantity::parse(text).ok()?.units()).ok()?;
    (bytes >= SMALLEST_PAGE && bytes.is_power_of_two()).then_some(bytes)
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
        let options = |medium: StorageMedium, size| medium.mount_options(size);
        let memory = |options: &str| Some(("tmpfs", options.to_owned()));
        assert_eq!(options(StorageMedium::Default, Some(1)), None);
        assert_eq!(options(StorageMedium::Memory, None), memory("mode=1777"));
        assert_eq!(options(StorageMedium::Memory, Some(4096)), memory("mode=1777,size=4096"));
        let huge = Some(("hugetlbfs", "mode=0777,pagesize=2097152".to_owned()));
        assert_eq!(options(StorageMedium::HugePages(Some(2 << 20)), Some(1)), huge);
    }

    #[test]
    fn pages_that_are_not_named_are_those_that_the_pod_asks_for() {
        use StorageMedium::{HugePages, Memory};
        let rows = [
            (HugePages(None), vec![1 << 30], HugePages(Some(1 << 30))),
            (HugePages(None), vec![], HugePages(None)),
            (HugePages(None), vec![2 << 20, 1 << 30], HugePages(None)),
            (HugePages(Some(2 << 20)), vec![1 << 30], HugePages(Some(2 << 20))),
            (Memory, vec![1 << 30], Memory),
        ];
        for (medium, of_pod, expected) in rows {
            assert_eq!(medium.with_page_size(&of_pod), expected, "{medium:?} {of_pod:?}");
        }
    }
}
