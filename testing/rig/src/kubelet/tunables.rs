//! Fakes the kernel settings that the Go kubelet changes if they differ from what it wants.
//!
//! They belong to the whole machine, and the tests must not change them: in the tests' mount namespace files are mounted over them with the
//! values that it wants to read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oarsman_host::namespaces;
use rustix::mount::mount_bind;

/// The wanted values, by path below `/proc/sys`.
const WANTED: [(&str, &str); 6] = [
    ("kernel/keys/root_maxbytes", "25000000"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
];

/// Files mounted over the kernel's. They are removed when this is dropped.
pub(super) struct FakeTunables(Vec<PathBuf>);

impl FakeTunables {
    /// Mounts such files, which are kept in that directory.
    pub(super) fn show(directory: &Path) -> Result<Self> {
        let mut shown = Self(Vec::new());
        for (name, value) in WANTED {
            let file = directory.join(format!("tunable-{}", name.replace('/', "-")));
            fs::write(&file, format!("{value}\n"))?;
            let point = Path::new("/proc/sys").join(name);
            mount_bind(&file, &point)
                .with_context(|| format!("cannot mount over {}", point.display()))?;
            shown.0.push(point);
        }
        Ok(shown)
    }
}

impl Drop for FakeTunables {
    fn drop(&mut self) {
        for point in &self.0 {
            // The mount ends with the namespace at the latest.
            namespaces::detach(point).ok();
        }
    }
}
