//! The `sh` of images that stand in for official ones: busybox's, whose messages tests expect, unless the environment has names that are not
//! valid for shell variables. Debian's busybox drops those, and bash passes them on. In images with Debian's tools it is bash, too: busybox's shell
//! runs its own applets before programs of the same name in PATH, and its `nc` knows no UDP.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// One of Debian's tools, which images have all or none of.
const TOOL: &str = "/usr/bin/nc";

fn main() -> io::Result<()> {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| OsString::from("sh"));
    let drops_none = env::vars_os().all(|(name, _)| is_name(&name));
    let has_tools = Path::new(TOOL).exists();
    let shell = if drops_none && !has_tools { "/bin/busybox" } else { "/bin/bash" };
    // `exec` returns only when it failed.
    Err(Command::new(shell).arg0(name).args(arguments).exec())
}

/// Whether a shell variable may have that name.
fn is_name(name: &OsStr) -> bool {
    let mut bytes = name.as_encoded_bytes().iter();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    begins && bytes.all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_shell_variables_are_recognised() {
        for (name, want) in [
            ("HOME", true),
            ("_x1", true),
            ("data-1", false),
            ("1a", false),
            ("", false),
            ("a.b", false),
        ] {
            assert_eq!(is_name(OsStr::new(name)), want, "{name:?}");
        }
    }
}
