//! The world's files: a map from paths to bytes, in memory.
//!
//! Directories are not stored: one exists as long as there is a file below it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::lock;

/// All files of one world; clones are the same files.
#[derive(Debug, Clone, Default)]
pub struct FakeFiles(Arc<FilesInner>);

#[derive(Debug, Default)]
struct FilesInner {
    by_path: Mutex<BTreeMap<PathBuf, FakeFile>>,
    appeared: Notify,
}

/// An open file. It stays the same file when it is renamed, and outlives its last name.
#[derive(Debug, Clone, Default)]
pub struct FakeFile(Arc<Mutex<Vec<u8>>>);

impl FakeFile {
    /// Appends to the file.
    pub fn append(&self, bytes: &[u8]) {
        lock(&self.0).extend_from_slice(bytes);
    }

    /// The whole content.
    pub fn content(&self) -> Vec<u8> {
        lock(&self.0).clone()
    }
}

impl FakeFiles {
    /// Opens a file, and creates it if it does not exist.
    ///
    /// # Errors
    /// When the path is that of a directory.
    pub fn open(&self, path: &Path) -> io::Result<FakeFile> {
        let mut by_path = lock(&self.0.by_path);
        if is_directory(&by_path, path) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, path.display().to_string()));
        }
        let file = by_path.entry(path.to_owned()).or_default().clone();
        drop(by_path);
        self.0.appeared.notify_waiters();
        Ok(file)
    }

    /// Creates a file or replaces its content.
    ///
    /// # Errors
    /// When the path is that of a directory.
    pub fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let file = self.open(path)?;
        *lock(&file.0) = content.to_vec();
        Ok(())
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// When there is none.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = lock(&self.0.by_path).get(path).cloned();
        file.map(|file| file.content()).ok_or_else(|| not_found(path))
    }

    /// Renames a file, and replaces one of the new name.
    ///
    /// # Errors
    /// When there is none.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut by_path = lock(&self.0.by_path);
        let file = by_path.remove(from).ok_or_else(|| not_found(from))?;
        by_path.insert(to.to_owned(), file);
        drop(by_path);
        self.0.appeared.notify_waiters();
        Ok(())
    }

    /// Renames a file, unless there is one of the new name.
    ///
    /// # Errors
    /// When there is none of the old name, or one of the new name.
    pub fn rename_to_free_name(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut by_path = lock(&self.0.by_path);
        if by_path.contains_key(to) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, to.display().to_string()));
        }
        let file = by_path.remove(from).ok_or_else(|| not_found(from))?;
        by_path.insert(to.to_owned(), file);
        drop(by_path);
        self.0.appeared.notify_waiters();
        Ok(())
    }

    /// Removes a file, or a directory with all below it; not an error when there is none.
    pub fn remove(&self, path: &Path) {
        lock(&self.0.by_path).retain(|name, _| !name.starts_with(path));
    }

    /// Whether there is a file or a directory.
    pub fn exists(&self, path: &Path) -> bool {
        let by_path = lock(&self.0.by_path);
        by_path.contains_key(path) || is_directory(&by_path, path)
    }

    /// The paths of all files in a directory and below, in order.
    pub fn below(&self, directory: &Path) -> Vec<PathBuf> {
        let by_path = lock(&self.0.by_path);
        let from_there = by_path
            .range::<Path, _>((Bound::Included(directory), Bound::Unbounded))
            .map(|(path, _)| path);
        from_there.take_while(|path| path.starts_with(directory)).cloned().collect()
    }

    /// Waits until there is a file or a directory.
    pub async fn until_exists(&self, path: &Path) {
        loop {
            // It is notified from its creation on, so nothing is missed between the check and the wait.
            let appeared = self.0.appeared.notified();
            if self.exists(path) {
                return;
            }
            appeared.await;
        }
    }
}

/// Paths are ordered by their components, so what lies below one comes right after it.
fn is_directory(by_path: &BTreeMap<PathBuf, FakeFile>, path: &Path) -> bool {
    let after = (Bound::Excluded(path), Bound::Unbounded);
    by_path.range::<Path, _>(after).next().is_some_and(|(name, _)| name.starts_with(path))
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> &Path {
        Path::new(path)
    }

    #[test]
    fn an_open_file_keeps_its_identity_when_it_is_renamed() {
        let files = FakeFiles::default();
        let log = files.open(at("/a")).unwrap();
        log.append(b"one");
        files.rename(at("/a"), at("/b")).unwrap();
        log.append(b" two");
        assert_eq!(files.read(at("/b")).unwrap(), b"one two");
        files.open(at("/a")).unwrap().append(b"new");
        assert_eq!(files.read(at("/a")).unwrap(), b"new");
        files.remove(at("/b"));
        log.append(b" three");
        assert_eq!(files.read(at("/b")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_directory_is_there_as_long_as_something_is_in_it() {
        let files = FakeFiles::default();
        for path in ["/a/b/c", "/a/b.txt", "/a/bc"] {
            files.write(at(path), b"").unwrap();
        }
        assert!(files.exists(at("/a/b")) && !files.exists(at("/a/b/d")));
        assert_eq!(files.write(at("/a/b"), b"").unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(files.below(at("/a/b")), [at("/a/b/c")]);
        files.remove(at("/a/b"));
        assert_eq!(files.below(at("/a")), [at("/a/b.txt"), at("/a/bc")]);
        assert!(!files.exists(at("/a/b")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_a_file_ends_when_it_appears() {
        let files = FakeFiles::default();
        let waiting = tokio::spawn({
            let files = files.clone();
            async move { files.until_exists(at("/go")).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        files.write(at("/go"), b"").unwrap();
        let max_wait = std::time::Duration::from_secs(1);
        tokio::time::timeout(max_wait, waiting).await.unwrap().unwrap();
    }
}
