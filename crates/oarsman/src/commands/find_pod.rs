//! Finds the pod that an argument of a command names: by name, by namespace and name, without the node's name at the end, or by a prefix.

use std::fmt::Write;

use oarsman_core::pod::PodExt;
use oarsman_core::report::{NodeReport, PodReport};

#[cfg(test)]
mod tests;

/// How many other names an error lists when no pod has the given one.
const NAMED: usize = 10;

/// Why the argument names no single pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PodNotFound {
    /// There is no pod of that name.
    #[error("there is no pod {name}{}", list_names(near, "did you mean"))]
    Unknown { name: String, near: Vec<String> },
    /// There are several such pods.
    #[error("{name} could be several pods{}", list_names(among, "name one of"))]
    Ambiguous { name: String, among: Vec<String> },
}

fn list_names(names: &[String], how: &str) -> String {
    let mut text = String::new();
    if !names.is_empty() {
        // Writing to a string does not fail.
        write!(text, "; {how} {}", names.join(", ")).ok();
    }
    text
}

/// The pod that the argument names.
pub(super) fn find<'a>(node: &'a NodeReport, name: &str) -> Result<&'a PodReport, PodNotFound> {
    let meant = PodQuery::of(name);
    let of_node = format!("{}-{}", meant.name, node.node);
    let here: Vec<&PodReport> =
        node.pods.iter().filter(|pod| meant.has_namespace_of(pod)).collect();
    let ways: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == meant.name, &|name| name == of_node, &|name| name.starts_with(meant.name)];
    for way in ways {
        let found: Vec<&PodReport> =
            here.iter().copied().filter(|pod| way(&pod.pod.full_name().name)).collect();
        if let Some((first, rest)) = found.split_first() {
            // Of two pods of one name, the one that waits for the other to end comes second.
            let same = rest.iter().all(|other| display_name(other) == display_name(first));
            let among = || found.iter().map(|pod| display_name(pod)).collect();
            return if same { Ok(first) } else { Err(ambiguous(name, among())) };
        }
    }
    Err(PodNotFound::Unknown { name: name.to_owned(), near: near(node, meant.name) })
}

fn ambiguous(name: &str, mut among: Vec<String>) -> PodNotFound {
    among.dedup();
    among.truncate(NAMED);
    PodNotFound::Ambiguous { name: name.to_owned(), among }
}

struct PodQuery<'a> {
    namespace: Option<&'a str>,
    name: &'a str,
}

impl<'a> PodQuery<'a> {
    fn of(text: &'a str) -> Self {
        match text.split_once('/') {
            Some((namespace, name)) => Self { namespace: Some(namespace), name },
            None => Self { namespace: None, name: text },
        }
    }

    fn has_namespace_of(&self, pod: &PodReport) -> bool {
        let namespace = pod.pod.full_name().namespace;
        self.namespace.is_none_or(|wanted| wanted == namespace)
    }
}

/// A pod's name as these commands accept it.
pub(super) fn display_name(pod: &PodReport) -> String {
    let name = pod.pod.full_name();
    match name.namespace.as_str() {
        "default" => name.name,
        namespace => format!("{namespace}/{}", name.name),
    }
}

/// The most similar names; all when there are few.
fn near(node: &NodeReport, name: &str) -> Vec<String> {
    let mut names: Vec<(usize, String)> = node
        .pods
        .iter()
        .map(|pod| (distance(&pod.pod.full_name().name, name), display_name(pod)))
        .collect();
    names.sort();
    names.dedup();
    names.into_iter().take(NAMED).map(|(_, name)| name).collect()
}

/// The edit distance between a name and what was typed; a prefix counts as close.
fn distance(name: &str, typed: &str) -> usize {
    let begin: String = name.chars().take(typed.chars().count()).collect();
    edit_distance(&begin, typed)
}

/// The number of characters that have to be changed, added or removed.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], line + 1);
        for (column, wanted) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *wanted);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
