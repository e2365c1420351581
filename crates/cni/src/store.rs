//! What is kept of each attachment: the network's configuration and arguments, and the result of ADD, one file for each sandbox.
//!
//! It is written before the first plugin is called, so that whatever a crash leaves is removed by the same plugins, also when the configuration has
//! changed since. libcni keeps the same below `/var/lib/cni/results`, after ADD. Leases of plugins outlive the machine's boot, and so do these files.
//! They are not synced: what a power failure takes, GC finds.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use oarsman_host::files::{FileContents, is_plain_name, read_regular};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{CniError, store_error};
use crate::network::{self, CniNetwork};
use crate::result;

const SUFFIX: &str = ".json";
const UNFINISHED: &str = ".new";
/// Only root may look: configurations may have passwords.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// A configuration, a result, and the arguments of a pod.
const MAX_BYTES: u64 = network::MAX_BYTES + result::MAX_BYTES as u64 + (2 << 20);

/// A sandbox's place in a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredAttachment {
    pub(crate) sandbox: String,
    /// The pod, `namespace/name`.
    pub(crate) pod: String,
    /// The name of the link in the pod.
    pub(crate) interface: String,
    /// The file of the pod's network namespace.
    pub(crate) namespace: PathBuf,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) capabilities: Map<String, Value>,
    /// The configuration as it was then.
    pub(crate) network: Value,
    /// What the last plugin has answered to ADD.
    pub(crate) result: Option<Map<String, Value>>,
    pub(crate) phase: AttachmentPhase,
}

/// What is done about an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AttachmentPhase {
    /// Plugins connect it.
    Adding,
    /// It is connected.
    Attached,
    /// Plugins disconnect it, or have failed to.
    Deleting,
}

impl StoredAttachment {
    /// The network as it was when the sandbox was connected.
    pub(crate) fn network(&self) -> Option<CniNetwork> {
        CniNetwork::parse_list(self.network.to_string().as_bytes()).ok()
    }
}

/// The files of all attachments. All of this blocks.
#[derive(Clone, Debug)]
pub(crate) struct AttachmentStore {
    directory: PathBuf,
}

impl AttachmentStore {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// All attachments. A file that cannot be understood is removed: what it named is known to nothing but GC.
    pub(crate) fn all(&self) -> Result<Vec<StoredAttachment>, CniError> {
        let mut found = Vec::new();
        for name in self.names()? {
            let attachment = match name.strip_suffix(SUFFIX) {
                Some(sandbox) => self.get(sandbox)?,
                None => None,
            };
            match attachment {
                Some(attachment) => found.push(attachment),
                None => remove(&self.directory.join(name))?,
            }
        }
        Ok(found)
    }

    fn names(&self) -> Result<Vec<String>, CniError> {
        let list = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.directory)? {
                names.extend(entry?.file_name().into_string());
            }
            names.sort();
            Ok(names)
        };
        unless_gone(list()).map_err(store_error("list", &self.directory))
    }

    /// The attachment of a sandbox; none if it has none that can be understood.
    pub(crate) fn get(&self, sandbox: &str) -> Result<Option<StoredAttachment>, CniError> {
        let path = self.path(sandbox)?;
        let content = match read_regular(&path, MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(store_error("read", &path))?,
        };
        let FileContents::Bytes(text) = content else { return Ok(None) };
        let attachment: Option<StoredAttachment> = serde_json::from_slice(&text).ok();
        Ok(attachment.filter(|it| it.sandbox == sandbox && it.network().is_some()))
    }

    /// Replaces the file of an attachment as a whole.
    pub(crate) fn put(&self, attachment: &StoredAttachment) -> Result<(), CniError> {
        let path = self.path(&attachment.sandbox)?;
        let write = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&self.directory)?;
            let fresh = self.directory.join(format!("{}{UNFINISHED}", attachment.sandbox));
            let mut options = File::options();
            options.write(true).create(true).truncate(true).mode(FILE_MODE);
            options.open(&fresh)?.write_all(&serde_json::to_vec(attachment)?)?;
            fs::rename(fresh, &path)
        };
        write().map_err(store_error("write", &path))
    }

    /// Removes the file of a sandbox; fine when there is none.
    pub(crate) fn remove(&self, sandbox: &str) -> Result<(), CniError> {
        remove(&self.path(sandbox)?)
    }

    /// Removes the directory, if it is empty.
    pub(crate) fn remove_directory(&self) -> Result<(), CniError> {
        unless_gone(fs::remove_dir(&self.directory))
            .map_err(store_error("remove the directory", &self.directory))
    }

    fn path(&self, sandbox: &str) -> Result<PathBuf, CniError> {
        let path = self.directory.join(format!("{sandbox}{SUFFIX}"));
        match is_plain_name(sandbox) {
            true => Ok(path),
            false => Err(store_error("use", &path)(io::ErrorKind::InvalidFilename.into())),
        }
    }
}

fn remove(path: &Path) -> Result<(), CniError> {
    unless_gone(fs::remove_file(path)).map_err(store_error("remove", path))
}

fn unless_gone<T: Default>(result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attachment(sandbox: &str) -> StoredAttachment {
        StoredAttachment {
            sandbox: sandbox.to_owned(),
            pod: "default/web".to_owned(),
            interface: "eth0".to_owned(),
            namespace: "/run/ns/x".into(),
            labels: vec![("A".to_owned(), "1".to_owned())],
            capabilities: Map::new(),
            network: json!({ "cniVersion": "1.0.0", "name": "n", "plugins": [{ "type": "a" }] }),
            result: None,
            phase: AttachmentPhase::Adding,
        }
    }

    #[test]
    fn attachments_are_found_again_and_what_is_damaged_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("cni");
        let store = AttachmentStore::new(&directory);
        assert!(store.all().unwrap().is_empty());
        let mut one = attachment("one");
        store.put(&one).unwrap();
        store.put(&attachment("two")).unwrap();
        one.phase = AttachmentPhase::Attached;
        one.result = json!({ "ips": [] }).as_object().cloned();
        store.put(&one).unwrap();
        assert_eq!(store.get("one").unwrap(), Some(one.clone()));
        fs::write(directory.join("three.json"), "{").unwrap();
        fs::write(directory.join("four.new"), "{}").unwrap();
        fs::copy(directory.join("one.json"), directory.join("other.json")).unwrap();
        assert_eq!(store.all().unwrap(), [one, attachment("two")]);
        assert_eq!(store.names().unwrap(), ["one.json", "two.json"]);
        for sandbox in ["one", "one", "two"] {
            store.remove(sandbox).unwrap();
        }
        store.remove_directory().unwrap();
        store.remove_directory().unwrap();
        assert!(!directory.exists());
    }

    #[test]
    fn an_id_cannot_lead_out_of_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let store = AttachmentStore::new(place.path());
        for id in ["../one", "", "..", "a/b"] {
            assert!(store.get(id).is_err() && store.remove(id).is_err(), "{id}");
            assert!(store.put(&attachment(id)).is_err(), "{id}");
        }
    }
}
