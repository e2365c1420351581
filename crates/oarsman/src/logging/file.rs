//! The agent's own log file: starts a new one when it is full, and keeps some old ones.
//!
//! Other programs may rotate it too. A file that was moved away or removed is created anew within a second, and one that was truncated is simply
//! written on, so that logrotate works with and without `copytruncate`, and needs to signal no process.
//!
//! A pod may have the directory mounted. So the directory is opened once, and only a regular file of our own is opened in it; while something
//! else has its name, lines go to the file that is open.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_host::beneath::RootDirectory;
use oarsman_sync::Guarded;

/// Logs may hold what not every user should read.
const MODE: u32 = 0o640;

/// When the file is rotated, and how many old ones are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RotationLimits {
    /// The size in bytes from which on a new file is started; 0 for never, where another program rotates it.
    pub(crate) size: u64,
    /// How many files there are at most, the current one among them.
    pub(crate) files: u32,
}

impl Default for RotationLimits {
    fn default() -> Self {
        Self { size: 50 << 20, files: 5 }
    }
}

impl RotationLimits {
    fn is_exceeded(self, size: u64) -> bool {
        self.size > 0 && size > self.size
    }
}

/// The current file and the rotated ones.
#[derive(Debug)]
pub(super) struct LogFile {
    directory: RootDirectory,
    name: PathBuf,
    limits: RotationLimits,
    clock: Arc<dyn Clock>,
    current: Guarded<OpenLogFile>,
}

#[derive(Debug)]
struct OpenLogFile {
    file: File,
    size: u64,
    /// The second in which the file was last seen at its path.
    checked: i64,
}

impl LogFile {
    /// Appends to the file of that name, or creates it.
    pub(super) fn open(
        path: &Path,
        limits: RotationLimits,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let directory = RootDirectory::open(parent)?;
        let name = PathBuf::from(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
        let current = Guarded::new(OpenLogFile::open(&directory, &name, second(&*clock))?);
        Ok(Self { directory, name, limits, clock, current })
    }

    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut current = self.current.lock();
        let second = second(&*self.clock);
        if current.checked != second {
            current.checked = second;
            if !current.is_at(&self.directory, &self.name) {
                self.reopen(&mut current, second);
            }
        }
        let is_full = self.limits.is_exceeded(current.size + line.len() as u64);
        if current.size > 0 && is_full && self.shift().is_ok() {
            self.reopen(&mut current, second);
        }
        current.size += line.len() as u64;
        current.file.write_all(line)
    }

    /// Goes on with the file of that name. If there cannot be one, lines are better in the old one than nowhere.
    fn reopen(&self, current: &mut OpenLogFile, second: i64) {
        if let Ok(opened) = OpenLogFile::open(&self.directory, &self.name, second) {
            *current = opened;
        }
    }

    /// Renames every old file to the next number, and removes the oldest.
    fn shift(&self) -> io::Result<()> {
        let oldest = self.limits.files.max(1) - 1;
        if oldest == 0 {
            return self.directory.remove_file(&self.name);
        }
        for age in (1..oldest).rev() {
            match self.directory.rename(&self.older(age), &self.older(age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.directory.rename(&self.name, &self.older(1))
    }

    fn older(&self, age: u32) -> PathBuf {
        let mut name = self.name.clone().into_os_string();
        name.push(format!(".{age}"));
        name.into()
    }
}

impl OpenLogFile {
    fn open(directory: &RootDirectory, name: &Path, second: i64) -> io::Result<Self> {
        let file = directory.append_file(name, MODE)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size, checked: second })
    }

    /// Also notices that the file was truncated.
    fn is_at(&mut self, directory: &RootDirectory, name: &Path) -> bool {
        let Ok(own) = self.file.metadata() else { return false };
        self.size = own.len();
        let Ok(there) = directory.metadata(name) else { return false };
        (own.dev(), own.ino()) == (there.dev(), there.ino())
    }
}

/// The time in whole seconds.
fn second(clock: &dyn Clock) -> i64 {
    clock.wall().as_second()
}

/// Lines come whole, one at a time.
impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_line(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod logrotate;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use oarsman_clock::SystemClock;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn log(limits: RotationLimits) -> (tempfile::TempDir, LogFile) {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock::start());
        let log = LogFile::open(&path(&directory), limits, clock).unwrap();
        (directory, log)
    }

    fn path(directory: &tempfile::TempDir) -> PathBuf {
        directory.path().join("logs/a.log")
    }

    fn files(directory: &tempfile::TempDir) -> Vec<(String, String)> {
        let entries = fs::read_dir(directory.path().join("logs")).unwrap();
        let read = |entry: fs::DirEntry| {
            let text = fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        };
        let mut files: Vec<_> = entries.map(|entry| read(entry.unwrap())).collect();
        files.sort();
        files
    }

    fn want(files: &[(&str, &str)]) -> Vec<(String, String)> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_full_file_is_rotated_and_the_oldest_removed() {
        let (directory, log) = log(RotationLimits { size: 4, files: 3 });
        for line in ["a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "g\n"] {
            log.write_line(line.as_bytes()).unwrap();
        }
        let kept = [("a.log", "g\n"), ("a.log.1", "e\nf\n"), ("a.log.2", "c\nd\n")];
        assert_eq!(files(&directory), want(&kept));
    }

    #[test]
    fn with_a_limit_of_one_file_it_is_replaced_and_a_long_line_fits() {
        let (directory, log) = log(RotationLimits { size: 4, files: 1 });
        log.write_line(b"a\n").unwrap();
        log.write_line(b"a long line\n").unwrap();
        assert_eq!(files(&directory), want(&[("a.log", "a long line\n")]));
    }

    #[test]
    fn without_a_size_nothing_is_rotated() {
        let (directory, log) = log(RotationLimits { size: 0, files: 2 });
        log.write_line(b"a\n").unwrap();
        log.write_line(b"b\n").unwrap();
        assert_eq!(files(&directory), want(&[("a.log", "a\nb\n")]));
    }

    #[test]
    fn a_file_that_was_moved_or_truncated_by_other_programs_is_handled() {
        let (directory, log) = log(RotationLimits::default());
        log.write_line(b"before\n").unwrap();
        log.directory.rename(&log.name, &log.older(1)).unwrap();
        log.current.lock().checked = 0;
        log.write_line(b"after\n").unwrap();
        assert_eq!(files(&directory), want(&[("a.log", "after\n"), ("a.log.1", "before\n")]));
        File::options().write(true).open(path(&directory)).unwrap().set_len(0).unwrap();
        log.write_line(b"cut\n").unwrap();
        assert_eq!(files(&directory)[0].1, "cut\n");
    }

    #[test]
    fn other_users_may_not_read_the_log() {
        let (directory, _log) = log(RotationLimits::default());
        assert_eq!(fs::metadata(path(&directory)).unwrap().mode() & 0o007, 0);
    }

    /// Puts something in the place of the log, and returns what the log did with two more lines.
    fn written_past(place: impl Fn(&Path)) -> (tempfile::TempDir, LogFile) {
        let (directory, log) = log(RotationLimits { size: 30, files: 3 });
        fs::write(directory.path().join("target"), "target\n").unwrap();
        log.write_line(b"before\n").unwrap();
        fs::rename(path(&directory), directory.path().join("moved")).unwrap();
        place(&path(&directory));
        log.current.lock().checked = 0;
        log.write_line(b"after\n").unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(read("moved"), "before\nafter\n");
        assert_eq!(read("target"), "target\n");
        assert!(!directory.path().join("none").exists());
        (directory, log)
    }

    #[test]
    fn what_a_container_puts_in_the_place_of_the_log_is_not_written_to() {
        written_past(|place| symlink("../target", place).unwrap());
        written_past(|place| symlink("../none", place).unwrap());
        written_past(|place| fs::hard_link(place.with_file_name("../target"), place).unwrap());
        written_past(|place| mknodat(CWD, place, FileType::Fifo, Mode::RWXU, 0).unwrap());
        written_past(|place| drop(UnixListener::bind(place).unwrap()));
        written_past(|place| fs::create_dir(place).unwrap());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let (directory, _) = written_past(|place| symlink("../none", place).unwrap());
        let limits = RotationLimits::default();
        LogFile::open(&path(&directory), limits, clock).expect_err("also at the start");
        assert!(!directory.path().join("none").exists());
    }

    #[test]
    fn a_log_that_cannot_be_rotated_is_written_on() {
        let (directory, log) = log(RotationLimits { size: 10, files: 2 });
        fs::create_dir_all(directory.path().join("logs/a.log.1/x")).unwrap();
        for line in ["first\n", "second\n", "third\n"] {
            log.write_line(line.as_bytes()).unwrap();
        }
        let text = fs::read_to_string(path(&directory)).unwrap();
        assert_eq!(text, "first\nsecond\nthird\n");
    }

    #[test]
    fn a_directory_that_is_replaced_by_a_link_leads_nowhere() {
        let (directory, log) = log(RotationLimits { size: 4, files: 2 });
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("elsewhere")).unwrap();
        fs::rename(at("logs"), at("moved")).unwrap();
        symlink("elsewhere", at("logs")).unwrap();
        log.write_line(b"one\n").unwrap();
        log.current.lock().checked = 0;
        log.write_line(b"two\n").unwrap();
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(at("moved/a.log")).unwrap(), "two\n");
    }
}
