//! Lists of CPUs, as the kernel and configurations write them: `0-2,4`.

use std::collections::BTreeSet;

/// No machine has a CPU of a higher number.
const HIGHEST: u32 = 8191;

/// How many CPUs a list names; none when it is no list.
pub(crate) fn count(list: &str) -> Option<u32> {
    let mut all = BTreeSet::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last > HIGHEST {
            return None;
        }
        all.extend(first..=last);
    }
    u32::try_from(all.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_of_a_list_counts_once() {
        let rows = [
            ("0", Some(1)),
            ("0-3", Some(4)),
            ("0-2,4", Some(4)),
            ("0-2, 1-3", Some(4)),
            ("", None),
            ("a", None),
            ("0-4294967295", None),
        ];
        for (list, expected) in rows {
            assert_eq!(count(list), expected, "{list:?}");
        }
    }
}
