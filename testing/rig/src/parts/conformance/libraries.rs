//! Finds the libraries of a dynamic program, by its own loader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::parts::tools::output;

/// How many links a path may lead through.
const LINKS: usize = 16;

/// The paths of all libraries that are loaded for a program of a tree, as seen inside of the tree.
pub(super) fn of(root: &Path, program: &str) -> Result<Vec<String>> {
    let mut command = Command::new("chroot");
    command.arg(root).args([loader()?, "--list", program]);
    let listed = output(&mut command).with_context(|| format!("the libraries of {program}"))?;
    Ok(paths(&listed).map(ToOwned::to_owned).collect())
}

fn loader() -> Result<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("/lib64/ld-linux-x86-64.so.2"),
        "aarch64" => Ok("/lib/ld-linux-aarch64.so.1"),
        other => bail!("the name of the loader for {other} is not known here: add it"),
    }
}

/// What the kernel provides itself has no path.
fn paths(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
}

/// The path of the file outside of the tree. Absolute links are resolved inside of it.
pub(super) fn resolve(root: &Path, path: &Path) -> Result<PathBuf> {
    let mut inside = path.to_owned();
    for _ in 0..LINKS {
        let outside = root.join(inside.strip_prefix("/").unwrap_or(&inside));
        match fs::read_link(&outside) {
            Ok(target) if target.is_absolute() => inside = target,
            _ => return Ok(outside),
        }
    }
    bail!("{} leads through more than {LINKS} links", path.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn libraries_are_read_from_what_the_loader_lists() {
        let listed = "\tlinux-vdso.so.1 (0x7f)\n\tliba.so.1 => /lib/x/liba.so.1 (0x7e)\n\t/lib64/ld.so.2 (0x7d)\n";
        assert_eq!(paths(listed).collect::<Vec<_>>(), ["/lib/x/liba.so.1", "/lib64/ld.so.2"]);
    }

    #[test]
    fn links_stay_inside_of_the_tree() {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("real"), "x").unwrap();
        symlink("/real", tree.path().join("link")).unwrap();
        symlink("/circle", tree.path().join("circle")).unwrap();
        let found = resolve(tree.path(), Path::new("/link")).unwrap();
        assert_eq!(found, tree.path().join("real"));
        assert!(resolve(tree.path(), Path::new("/circle")).is_err());
    }
}
