//! The agent's own log file: starts a new one when it is full, and keeps some old ones.
//!
//! Other programs may rotate it too. A file that was moved away or removed is created anew within a second, and one that was truncated is simply
//! written on, so that logrotate works with and without `copytruncate`, and needs to signal no process.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarsman_clock::Clock;
use oarsman_sync::Guarded;
use tracing_subscriber::fmt::MakeWriter;

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
    path: PathBuf,
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
        path: PathBuf,
        limits: RotationLimits,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let current = Guarded::new(OpenLogFile::open(&path, second(&*clock))?);
        Ok(Self { path, limits, clock, current })
    }

    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut current = self.current.lock();
        let second = second(&*self.clock);
        if current.checked != second {
            current.checked = second;
            if !current.is_at(&self.path) {
                *current = OpenLogFile::open(&self.path, second)?;
            }
        }
        if current.size > 0 && self.limits.is_exceeded(current.size + line.len() as u64) {
            self.shift()?;
            *current = OpenLogFile::open(&self.path, second)?;
        }
        current.size += line.len() as u64;
        current.file.write_all(line)
    }

    /// Renames every old file to the next number, and removes the oldest.
    fn shift(&self) -> io::Result<()> {
        let oldest = self.limits.files.max(1) - 1;
        if oldest == 0 {
            return fs::remove_file(&self.path);
        }
        for age in (1..oldest).rev() {
            match fs::rename(self.older(age), self.older(age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.older(1))
    }

    fn older(&self, age: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{age}"));
        name.into()
    }
}

impl OpenLogFile {
    fn open(path: &Path, second: i64) -> io::Result<Self> {
        let file = File::options().create(true).append(true).mode(MODE).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size, checked: second })
    }

    /// Also notices that the file was truncated.
    fn is_at(&mut self, path: &Path) -> bool {
        let (Ok(own), Ok(there)) = (self.file.metadata(), fs::metadata(path)) else { return false };
        self.size = own.len();
        (own.dev(), own.ino()) == (there.dev(), there.ino())
    }
}

/// The time in whole seconds.
fn second(clock: &dyn Clock) -> i64 {
    clock.wall().as_second()
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// Lines come whole, one at a time.
impl Write for &LogFile {
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
    use oarsman_clock::SystemClock;

    use super::*;

    fn log(limits: RotationLimits) -> (tempfile::TempDir, LogFile) {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(SystemClock::start());
        let log = LogFile::open(directory.path().join("logs/a.log"), limits, clock).unwrap();
        (directory, log)
    }

    fn files(log: &LogFile) -> Vec<(String, String)> {
        let entries = fs::read_dir(log.path.parent().unwrap()).unwrap();
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
        let (_directory, log) = log(RotationLimits { size: 4, files: 3 });
        for line in ["a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "g\n"] {
            log.write_line(line.as_bytes()).unwrap();
        }
        let kept = [("a.log", "g\n"), ("a.log.1", "e\nf\n"), ("a.log.2", "c\nd\n")];
        assert_eq!(files(&log), want(&kept));
    }

    #[test]
    fn with_a_limit_of_one_file_it_is_replaced_and_a_long_line_fits() {
        let (_directory, log) = log(RotationLimits { size: 4, files: 1 });
        log.write_line(b"a\n").unwrap();
        log.write_line(b"a long line\n").unwrap();
        assert_eq!(files(&log), want(&[("a.log", "a long line\n")]));
    }

    #[test]
    fn without_a_size_nothing_is_rotated() {
        let (_directory, log) = log(RotationLimits { size: 0, files: 2 });
        log.write_line(b"a\n").unwrap();
        log.write_line(b"b\n").unwrap();
        assert_eq!(files(&log), want(&[("a.log", "a\nb\n")]));
    }

    #[test]
    fn a_file_that_was_moved_or_truncated_by_other_programs_is_handled() {
        let (_directory, log) = log(RotationLimits::default());
        log.write_line(b"before\n").unwrap();
        fs::rename(&log.path, log.older(1)).unwrap();
        log.current.lock().checked = 0;
        log.write_line(b"after\n").unwrap();
        assert_eq!(files(&log), want(&[("a.log", "after\n"), ("a.log.1", "before\n")]));
        File::options().write(true).open(&log.path).unwrap().set_len(0).unwrap();
        log.write_line(b"cut\n").unwrap();
        assert_eq!(files(&log)[0].1, "cut\n");
    }

    #[test]
    fn other_users_may_not_read_the_log() {
        let (_directory, log) = log(RotationLimits::default());
        assert_eq!(fs::metadata(&log.path).unwrap().mode() & 0o007, 0);
    }
}
