//! Archives of copied files. What a container packs is not trusted: no entry is written outside of the target.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};

use crate::commands::output::print_stderr;

/// What the headers of one entry may take, with long names and PAX records, all of which are read into memory.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// So many links are named; of the others only the number is told.
const NAMED_LINKS: usize = 10;

/// Packs a file or a directory as `name`.
pub(super) fn pack(writer: impl Write, from: &Path, name: &str) -> Result<()> {
    let mut archive = tar::Builder::new(writer);
    archive.follow_symlinks(false);
    if from.is_dir() {
        archive.append_dir_all(name, from)?;
    } else {
        archive.append_path_with_name(from, name)?;
    }
    Ok(archive.into_inner()?.flush()?)
}

/// What was copied of an archive, and what was left out.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// Files and directories.
    entries: u64,
    links: u64,
    /// The first links that were left out.
    named_links: Vec<PathBuf>,
}

impl Unpacked {
    /// Says which links were left out; a copy of nothing at all is a failure.
    pub(super) fn tell(self, path: &str) -> Result<()> {
        for link in &self.named_links {
            print_stderr(&format!("left out the symbolic link {}", link.display()))?;
        }
        if self.links > self.named_links.len() as u64 {
            print_stderr(&format!("left out {} symbolic links in all", self.links))?;
        }
        ensure!(self.entries > 0, "{path} was not copied: name a file or directory, not a link");
        Ok(())
    }

    fn leave_out(&mut self, link: PathBuf) {
        self.links += 1;
        if self.named_links.len() < NAMED_LINKS {
            self.named_links.push(link);
        }
    }
}

/// Writes the entries of an archive, whose first name is `name`, as `to`. Symbolic links are left out, since a later entry could be written
/// through one; a hard link becomes a copy of the file.
pub(super) fn unpack(reader: impl Read, name: &str, to: &Path) -> Result<Unpacked> {
    let budget = Rc::new(Cell::new(u64::MAX));
    let mut archive = tar::Archive::new(BudgetedReader { reader, budget: Rc::clone(&budget) });
    let mut unpacked = Unpacked::default();
    let mut entries = archive.entries()?;
    loop {
        budget.set(MAX_HEADER_BYTES);
        let Some(entry) = entries.next() else { break };
        budget.set(u64::MAX);
        unpack_entry(entry?, name, to, &mut unpacked)?;
    }
    budget.set(u64::MAX);
    // tar fills its last block after the end of the archive: what is not read would fail its writer.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(unpacked)
}

fn unpack_entry<R: Read>(
    mut entry: tar::Entry<'_, R>,
    name: &str,
    to: &Path,
    unpacked: &mut Unpacked,
) -> Result<()> {
    let path = entry.path()?.into_owned();
    let place = place_of(&path, name, to)?;
    let kind = entry.header().entry_type();
    if kind.is_dir() {
        fs::create_dir_all(&place)?;
    } else if kind.is_file() {
        io::copy(&mut entry, &mut create(&place)?)?;
    } else if kind.is_hard_link() {
        let first = entry.link_name()?.context("a hard link names its file")?.into_owned();
        let first = place_of(&first, name, to)?;
        io::copy(&mut File::open(&first)?, &mut create(&place)?)?;
    } else {
        unpacked.leave_out(path);
        return Ok(());
    }
    unpacked.entries += 1;
    Ok(())
}

fn create(place: &Path) -> Result<File> {
    if let Some(parent) = place.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    File::create(place).with_context(|| format!("cannot write {}", place.display()))
}

/// Where an entry goes.
fn place_of(path: &Path, name: &str, to: &Path) -> Result<PathBuf> {
    place_below(path, name, to)
        .with_context(|| format!("the archive has a path of another file: {}", path.display()))
}

/// None for a path that is not below `name`.
fn place_below(path: &Path, name: &str, to: &Path) -> Option<PathBuf> {
    let mut parts = path.components().filter(|part| *part != Component::CurDir);
    if parts.next() != Some(Component::Normal(name.as_ref())) {
        return None;
    }
    parts.try_fold(to.to_owned(), |place, part| match part {
        Component::Normal(part) => Some(place.join(part)),
        _ => None,
    })
}

/// Reads so many bytes at most, until the budget is set again.
struct BudgetedReader<R> {
    reader: R,
    budget: Rc<Cell<u64>>,
}

impl<R: Read> Read for BudgetedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        let left = self.budget.get().checked_sub(length as u64);
        let left =
            left.ok_or_else(|| io::Error::other("the archive has a header of over 1 MiB"))?;
        self.budget.set(left);
        Ok(length)
    }
}
