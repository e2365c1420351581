//! The files of vendors: which devices there are, and what each of them changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use oarsman_host::files::{FileContents, read_regular};
use serde::Deserialize;

use super::CdiError;
use super::edits::ContainerEdits;

/// The most that a file may have, in bytes: one for eight GPUs has 100 KiB.
const MOST_BYTES: u64 = 4 << 20;
/// The most files of a directory that are read.
const MOST_FILES: usize = 256;

/// A file, as vendors write it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CdiSpec {
    cdi_version: String,
    /// Vendor and class of its devices.
    kind: String,
    #[serde(default)]
    #[expect(dead_code, reason = "it may be there, and says nothing to us")]
    annotations: BTreeMap<String, String>,
    devices: Vec<CdiDevice>,
    /// For all of its devices.
    #[serde(default)]
    container_edits: ContainerEdits,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CdiDevice {
    name: String,
    #[serde(default)]
    #[expect(dead_code, reason = "it may be there, and says nothing to us")]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    container_edits: ContainerEdits,
}

#[derive(Clone, Debug)]
struct CdiFile {
    path: PathBuf,
    spec: CdiSpec,
}

/// All files of some directories.
#[derive(Debug)]
pub(super) struct CdiFiles {
    directories: Vec<PathBuf>,
    /// By directory.
    files: Vec<Vec<CdiFile>>,
    /// Why some of them could not be read.
    troubles: Vec<String>,
}

impl CdiFiles {
    /// Reads them. A file that is no CDI file is told only to those who miss a device.
    pub(super) fn read(directories: &[PathBuf]) -> Self {
        let mut troubles = Vec::new();
        let mut read = |directory: &PathBuf| {
            let found = paths(directory).into_iter().filter_map(|path| {
                let told = |why: &String| troubles.push(format!("{}: {why}", path.display()));
                let spec = read_file(&path).inspect_err(told).ok()?;
                Some(CdiFile { path, spec })
            });
            found.collect::<Vec<_>>()
        };
        let files = directories.iter().map(&mut read).collect();
        Self { directories: directories.to_vec(), files, troubles }
    }

    /// What the devices of these names change, in order: what a file changes for all of its devices comes once, before its first device.
    pub(super) fn edits_of(&self, names: &[String]) -> Result<Vec<&ContainerEdits>, CdiError> {
        let (mut edits, mut seen, mut asked) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for name in names.iter().filter(|name| asked.insert(name.as_str())) {
            let (file, device) = self.find(name)?;
            if seen.insert(&file.path) {
                edits.push(&file.spec.container_edits);
            }
            edits.push(&device.container_edits);
        }
        Ok(edits)
    }

    fn find(&self, name: &str) -> Result<(&CdiFile, &CdiDevice), CdiError> {
        let (kind, device) = qualified(name).ok_or_else(|| CdiError::Name { name: name.into() })?;
        for files in self.files.iter().rev() {
            let of_kind = files.iter().filter(|file| file.spec.kind == kind);
            let mut found = of_kind.flat_map(|file| {
                let devices = file.spec.devices.iter().filter(|it| it.name == device);
                devices.map(move |device| (file, device))
            });
            match (found.next(), found.next()) {
                (None, _) => {}
                (Some(only), None) => return Ok(only),
                (Some((first, _)), Some((second, _))) => {
                    let files = [first.path.clone(), second.path.clone()];
                    return Err(CdiError::Twice { name: name.to_owned(), files });
                }
            }
        }
        Err(CdiError::Unknown {
            name: name.to_owned(),
            directories: self.directories.clone(),
            troubles: self.troubles.clone(),
        })
    }
}

/// Kind and name of a device.
fn qualified(name: &str) -> Option<(&str, &str)> {
    let (kind, device) = name.split_once('=')?;
    (is_kind(kind) && !device.is_empty()).then_some((kind, device))
}

fn is_kind(kind: &str) -> bool {
    let parts = kind.split_once('/');
    parts.is_some_and(|(vendor, class)| {
        !vendor.is_empty() && !class.is_empty() && !class.contains('/')
    })
}

/// The files of a directory, by name. One that does not exist has none.
fn paths(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_spec =
        |path: &PathBuf| matches!(path.extension().and_then(OsStr::to_str), Some("json" | "yaml"));
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(is_spec).take(MOST_FILES).collect();
    paths.sort();
    paths
}

fn read_file(path: &Path) -> Result<CdiSpec, String> {
    match read_regular(path, MOST_BYTES).map_err(|error| error.to_string())? {
        FileContents::Bytes(bytes) => parse(&bytes),
        FileContents::TooLong => Err(format!("it has more than {MOST_BYTES} bytes")),
        FileContents::Other(_) => Err("it is no regular file".to_owned()),
    }
}

/// Reads a file's text, in YAML or JSON. What we do not know is refused: it could be what makes a device work.
fn parse(text: &[u8]) -> Result<CdiSpec, String> {
    let document = oarsman_manifest::one_document(text).map_err(|error| error.to_string())?;
    let spec: CdiSpec = serde_json::from_value(document).map_err(|error| error.to_string())?;
    if !is_known(&spec.cdi_version) {
        return Err(format!("its version {:?} is not known", spec.cdi_version));
    }
    if !is_kind(&spec.kind) {
        return Err(format!("its kind {:?} is not VENDOR/CLASS", spec.kind));
    }
    Ok(spec)
}

/// Versions since 0.3.0 only add to each other, within those of one major number.
fn is_known(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(0)), Some(Ok(minor))) => minor >= 3,
        (Some(Ok(1)), Some(Ok(_))) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPUS: &str = r#"
cdiVersion: "0.6.0"
kind: vendor.com/gpu
containerEdits:
  env: ["ALL=1"]
devices:
  - name: "0"
    containerEdits:
      deviceNodes: [{ path: /dev/gpu0 }]
  - name: "1"
    containerEdits:
      env: ["ONE=1"]
"#;

    #[test]
    fn files_that_are_not_as_they_have_to_be_are_refused_with_the_reason() {
        let rows = [
            (GPUS.to_owned(), ""),
            (GPUS.replace("0.6.0", "1.1.0"), ""),
            (GPUS.replace("0.6.0", "0.2.0"), "version"),
            (GPUS.replace("0.6.0", "2.0.0"), "version"),
            (GPUS.replace("vendor.com/gpu", "gpu"), "is not VENDOR/CLASS"),
            (GPUS.replace("vendor.com/gpu", "a/b/c"), "is not VENDOR/CLASS"),
            (GPUS.replace("env:", "environment:"), "unknown field"),
            (GPUS.replace("devices:", "device:"), "unknown field"),
            ("{".to_owned(), "not JSON"),
            (String::new(), "empty"),
        ];
        for (text, expected) in rows {
            let told = parse(text.as_bytes()).err().unwrap_or_default();
            assert!(told.contains(expected), "{text}: {told}");
            assert_eq!(told.is_empty(), expected.is_empty(), "{text}: {told}");
        }
    }

    fn directories(files: &[(&str, &str)]) -> (tempfile::TempDir, CdiFiles) {
        let scratch = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = scratch.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let all = ["etc", "run", "none"].map(|name| scratch.path().join(name));
        let files = CdiFiles::read(&all);
        (scratch, files)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_a_file_changes_for_all_of_its_devices_comes_once() {
        let (_scratch, files) = directories(&[("etc/gpus.yaml", GPUS)]);
        let wanted = names(&["vendor.com/gpu=1", "vendor.com/gpu=0", "vendor.com/gpu=1"]);
        let edits = files.edits_of(&wanted).unwrap();
        let shown: Vec<_> =
            edits.iter().map(|it| (it.env.join(","), it.device_nodes.len())).collect();
        assert_eq!(shown, [("ALL=1".into(), 0), ("ONE=1".into(), 0), (String::new(), 1)]);
    }

    #[test]
    fn the_later_directory_counts_and_two_files_of_one_directory_contradict_each_other() {
        let other = GPUS.replace("ONE=1", "ONE=2");
        let (_scratch, files) =
            directories(&[("etc/gpus.yaml", GPUS), ("run/gpus.json.yaml", &other)]);
        let edits = files.edits_of(&names(&["vendor.com/gpu=1"])).unwrap();
        assert_eq!(edits[1].env, ["ONE=2"]);
        let (_scratch, files) = directories(&[("etc/a.yaml", GPUS), ("etc/b.yaml", &other)]);
        let told = files.edits_of(&names(&["vendor.com/gpu=1"])).unwrap_err().to_string();
        assert!(told.contains("etc/a.yaml") && told.contains("etc/b.yaml"), "{told}");
    }

    #[test]
    fn a_device_that_no_file_has_is_named_with_what_could_not_be_read() {
        let (_scratch, files) = directories(&[("etc/gpus.yaml", GPUS), ("run/bad.json", "{")]);
        let told = files.edits_of(&names(&["vendor.com/gpu=2"])).unwrap_err().to_string();
        assert!(told.contains("the CDI device vendor.com/gpu=2"), "{told}");
        assert!(told.contains("run/bad.json: "), "{told}");
        for wrong in ["gpu", "gpu=0", "a/=0", "/b=0", "a/b=", "a/b/c=0"] {
            let told = files.edits_of(&names(&[wrong])).unwrap_err();
            assert!(matches!(told, CdiError::Name { .. }), "{wrong}: {told}");
        }
    }
}
