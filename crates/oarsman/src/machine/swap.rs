//! Reads which swap devices are on.

/// A file or device that memory is swapped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SwapDevice {
    pub(crate) name: String,
    pub(crate) kilobytes: u64,
}

/// Reads `/proc/swaps`.
pub(crate) fn parse(text: &str) -> Vec<SwapDevice> {
    text.lines().skip(1).filter_map(swap).collect()
}

fn swap(line: &str) -> Option<SwapDevice> {
    let mut fields = line.split_ascii_whitespace();
    let name = fields.next()?.to_owned();
    let kilobytes = fields.nth(1)?.parse().ok()?;
    Some(SwapDevice { name, kilobytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_but_the_first_is_a_swap() {
        let head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        assert_eq!(parse(head), []);
        let text =
            format!("{head}/dev/dm-1                               partition\t1003516\t0\t-2\n");
        assert_eq!(
            parse(&text),
            [SwapDevice { name: "/dev/dm-1".to_owned(), kilobytes: 1_003_516 }]
        );
    }
}
