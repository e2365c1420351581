//! How much of a pod goes to the runtime, which sends all of it back with every list.
//!
//! A list is one message of at most 16 MiB. A pod may have 256 KiB of annotations, so that 64 pods of one author would make every list
//! fail, and with it the node. What is left out is what is largest: nothing that runtimes are told by annotations is that large.

use std::collections::BTreeMap;

/// The pod's own annotations on a sandbox, or its labels there, in bytes.
const MOST_OF_A_POD: usize = 32 * 1024;
/// One annotation of ours on a container, in bytes; no path is longer.
const LONGEST_OF_A_CONTAINER: usize = 8 * 1024;
/// What the names of annotations begin with by which an agent knows its own pods again: they stay in any case.
const AGENT_PREFIXES: [&str; 2] = ["kubernetes.io/config.", "oarsman.io/"];

/// The texts of a pod that its sandbox carries: all of them, or as many of the shortest as the limit allows.
pub(super) fn bounded(texts: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut all: Vec<_> = texts.into_iter().flatten().collect();
    let size = |(name, value): &(&String, &String)| name.len() + value.len();
    let is_agents = |name: &str| AGENT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    all.sort_by_key(|text| (!is_agents(text.0), size(text)));
    let mut used = 0;
    let fits = |text: &(&String, &String)| {
        used += size(text);
        used <= MOST_OF_A_POD
    };
    all.into_iter().take_while(fits).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Whether a text may be an annotation of a container.
pub(super) fn is_short(text: &str) -> bool {
    text.len() <= LONGEST_OF_A_CONTAINER
}
