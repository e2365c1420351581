//! Who may do what at the same time.
//!
//! One lock file orders all threads and processes that use the store, held for milliseconds only:
//!
//! - shared: to begin a lease, to add what it needs, to prepare a root file system;
//! - exclusive: to change the list of images, and for `prune` to find what is garbage and take it out of sight by renames.
//!
//! What takes long (reading, unpacking, removing files) is done without the lock, in the directory of a lease. A lease lists the
//! blobs and layers that it needs, before it looks whether they are there, and `prune` leaves those alone. Its directory is locked by
//! its owner (`flock`), a lock that ends with the process: what others find unlocked is left over, and removed at the next open.
//! `flock` waits without a deadline; the caller has one for the thread that it calls on.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::digest::Digest;
use crate::error::{StoreError, failed};
use crate::files::{names_in, read_bounded, remove_whole_tree};

/// The list of what a lease needs, in its directory.
const NEEDS: &str = "needs";
/// 500 layers and blobs have fewer bytes than this.
const MAX_NEEDS: u64 = 1 << 20;
/// Names that other leases of a process with the same number may have left.
const MAX_NAMES: usize = 10_000;

/// Leases of this process, for their names.
static LEASES: AtomicU64 = AtomicU64::new(0);

/// The lock of the store, until it is dropped.
#[derive(Debug)]
pub(crate) struct StoreLock(#[expect(dead_code, reason = "its end is the unlock")] File);

impl StoreLock {
    pub(crate) fn shared(directory: &Path) -> Result<Self, StoreError> {
        Self::take(directory, FlockOperation::LockShared)
    }

    pub(crate) fn exclusive(directory: &Path) -> Result<Self, StoreError> {
        Self::take(directory, FlockOperation::LockExclusive)
    }

    /// Each holder opens the file anew: the kernel's lock belongs to what is opened, not to the process.
    fn take(directory: &Path, operation: FlockOperation) -> Result<Self, StoreError> {
        let path = directory.join("lock");
        let opened = File::options().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(failed("open the lock", &path))?;
        loop {
            match flock(&file, operation) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed("take the lock", &path)(error)),
                Ok(()) => return Ok(Self(file)),
            }
        }
    }
}

/// A piece of work that needs blobs and layers to stay, with a directory for what is not finished.
#[derive(Debug)]
pub struct Lease {
    store: PathBuf,
    directory: PathBuf,
    /// Locked as long as this lives.
    _locked: File,
    needs: File,
    files: AtomicU64,
}

/// What a blob or a layer is needed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needed {
    Blob(Digest),
    Layer(Digest),
}

impl Lease {
    pub(crate) fn begin(store: &Path) -> Result<Self, StoreError> {
        // No other process may find the directory before it is locked.
        let _lock = StoreLock::shared(store)?;
        let directory = make_directory(&store.join("leases"))?;
        let open = || -> std::io::Result<(File, File)> {
            let locked = File::open(&directory)?;
            flock(&locked, FlockOperation::NonBlockingLockExclusive)?;
            Ok((locked, File::create(directory.join(NEEDS))?))
        };
        let (locked, needs) = open().map_err(failed("begin the lease", &directory))?;
        Ok(Self {
            store: store.to_owned(),
            directory,
            _locked: locked,
            needs,
            files: AtomicU64::new(0),
        })
    }

    /// From now on `prune` leaves it alone. Whether it is there is to be looked at afterwards.
    pub(crate) fn need(&self, what: Needed) -> Result<(), StoreError> {
        let _lock = StoreLock::shared(&self.store)?;
        let line = match what {
            Needed::Blob(digest) => format!("blob {digest}\n"),
            Needed::Layer(digest) => format!("layer {digest}\n"),
        };
        let written = (&self.needs).write_all(line.as_bytes());
        written.map_err(failed("write", &self.directory.join(NEEDS)))
    }

    /// A path in the lease's directory that nothing has.
    pub(crate) fn new_path(&self) -> PathBuf {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{number}"))
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What is left is removed at the next open of the store.
        remove_whole_tree(&self.directory).ok();
    }
}

fn make_directory(leases: &Path) -> Result<PathBuf, StoreError> {
    for _ in 0..MAX_NAMES {
        let number = LEASES.fetch_add(1, Ordering::Relaxed);
        let path = leases.join(format!("{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            // A process of the same number had it.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("make the directory", &path)(error)),
            Ok(()) => return Ok(path),
        }
    }
    Err(failed("make a directory in", leases)(Errno::EXIST))
}

/// The leases of the store; the exclusive lock is held.
pub(crate) struct FoundLeases {
    /// What living leases need.
    pub(crate) needed: Vec<Needed>,
    /// Directories without an owner, locked by us now.
    pub(crate) left_over: Vec<(PathBuf, File)>,
}

/// Looks at all leases.
pub(crate) fn find(store: &Path, _lock: &StoreLock) -> Result<FoundLeases, StoreError> {
    let leases = store.join("leases");
    let mut found = FoundLeases { needed: Vec::new(), left_over: Vec::new() };
    for name in names_in(&leases)? {
        let path = leases.join(name);
        let opened = match File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            other => other.map_err(failed("open", &path))?,
        };
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => found.left_over.push((path, opened)),
            Err(Errno::WOULDBLOCK) => found.needed.extend(needs_of(&path)?),
            Err(error) => return Err(failed("look at the lock of", &path)(error)),
        }
    }
    Ok(found)
}

fn needs_of(lease: &Path) -> Result<Vec<Needed>, StoreError> {
    let path = lease.join(NEEDS);
    let file = match File::open(&path) {
        // It is being removed.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed("read", &path))?,
    };
    let text = read_bounded(file, MAX_NEEDS).map_err(failed("read", &path))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(needed).collect())
}

fn needed(line: &str) -> Option<Needed> {
    let (kind, digest) = line.split_once(' ')?;
    let digest = digest.parse().ok()?;
    match kind {
        "blob" => Some(Needed::Blob(digest)),
        "layer" => Some(Needed::Layer(digest)),
        _ => None,
    }
}
