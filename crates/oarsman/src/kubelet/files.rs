//! Reads the configuration: the file, the drop-ins in their order, and the flags on top.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oarsman_kubelet_config::flags::ParsedFlags;
use oarsman_kubelet_config::{ConfigFile, LoadedConfig, load as merge};

use super::problems_error;

/// The file name extension of drop-ins.
const SUFFIX: &str = "conf";

/// The configuration that the flags name.
pub(super) fn load(given: &ParsedFlags) -> Result<LoadedConfig> {
    let flags = &given.program;
    let file = named(&flags.config).map(|path| read(&path, "--config")).transpose()?;
    let drop_ins = match named(&flags.config_dir) {
        Some(directory) => drop_ins(&directory)?,
        None => Vec::new(),
    };
    let texts: Vec<ConfigFile<'_>> = drop_ins.iter().map(text).collect();
    merge(file.as_ref().map(text), &texts, &given.layers)
        .map_err(|problems| problems_error("this configuration", &problems))
}

fn named(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty())
}

fn text((path, bytes): &(PathBuf, Vec<u8>)) -> ConfigFile<'_> {
    ConfigFile { path, bytes }
}

/// A file with its absolute path: relative paths in it are resolved from its directory.
fn read(path: &Path, flag: &str) -> Result<(PathBuf, Vec<u8>)> {
    let cannot = || format!("cannot read {} ({flag})", path.display());
    let path = std::path::absolute(path).with_context(cannot)?;
    let bytes = fs::read(&path).with_context(cannot)?;
    Ok((path, bytes))
}

/// All drop-ins below a directory, sorted by name, subdirectories included.
fn drop_ins(directory: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let cannot = || format!("cannot read the drop-ins in {} (--config-dir)", directory.display());
    let mut entries = fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .with_context(cannot)?;
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() && !path.is_symlink() {
            found.extend(drop_ins(&path)?);
        } else if path.extension().is_some_and(|suffix| suffix == SUFFIX) {
            found.push(read(&path, "--config-dir")?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_ins_come_by_name_and_nothing_else_does() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("15-more")).unwrap();
        for name in ["20-b.conf", "10-a.conf", "15-more/99.conf", "30-c.yaml", "README"] {
            fs::write(directory.path().join(name), name).unwrap();
        }
        let found = drop_ins(directory.path()).unwrap();
        let names: Vec<&str> =
            found.iter().map(|(_, text)| std::str::from_utf8(text).unwrap()).collect();
        assert_eq!(names, ["10-a.conf", "15-more/99.conf", "20-b.conf"]);
        let missing = drop_ins(&directory.path().join("none")).unwrap_err().to_string();
        assert!(missing.contains("--config-dir"), "{missing}");
    }
}
