//! The changes of a child in their order, for tests of what must be on the disk before what.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::strace;

/// One call, as strace writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name, such as `rename`.
    pub call: String,
    /// Its arguments, with the paths of descriptors.
    pub arguments: String,
}

/// What the test `child` of this binary changes in a directory, in order.
///
/// # Panics
/// When the child fails.
pub fn changes(child: &str, place: &Path) -> Vec<Change> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let output = strace(child, place, &["-y", "-o", &log.path().display().to_string()]);
    assert!(output.status.success(), "{child}: {output:?}");
    let text = fs::read_to_string(log.path()).unwrap();
    text.lines()
        .filter_map(change)
        .filter(|it| it.arguments.contains(&place.display().to_string()))
        .collect()
}

/// The paths below a directory that changes name.
pub(crate) fn changed_paths(changes: &[Change], place: &Path) -> Vec<String> {
    let prefix = place.display().to_string();
    let texts = changes.iter().flat_map(|change| change.arguments.split(['"', '<', '>']));
    let paths: BTreeSet<&str> = texts.filter(|text| text.starts_with(&prefix)).collect();
    paths.into_iter().map(str::to_owned).collect()
}

/// A line is `PID CALL(ARGUMENTS) = RESULT`.
fn change(line: &str) -> Option<Change> {
    let (_, rest) = line.trim_start().split_once(' ')?;
    let (call, rest) = rest.trim_start().split_once('(')?;
    let (arguments, _) = rest.rsplit_once(" = ")?;
    Some(Change { call: call.to_owned(), arguments: arguments.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_changes_are_those_below_the_directory() {
        let change =
            |arguments: &str| Change { call: String::new(), arguments: arguments.to_owned() };
        let changes = [
            change(r#""/a/x.new", "/a/x")"#),
            change(r#"3</a/deep/y>, "text", 4)"#),
            change(r#"4</b/z>)"#),
        ];
        let paths = changed_paths(&changes, Path::new("/a"));
        assert_eq!(paths, ["/a/deep/y", "/a/x", "/a/x.new"]);
    }

    #[test]
    fn a_line_of_strace_is_a_call_and_its_arguments() {
        let line = r#"12    rename("/a/x.new", "/a/x") = 0"#;
        let want =
            Change { call: "rename".to_owned(), arguments: r#""/a/x.new", "/a/x")"#.to_owned() };
        assert_eq!(change(line), Some(want));
        assert_eq!(change("12 +++ exited with 0 +++"), None);
    }
}
