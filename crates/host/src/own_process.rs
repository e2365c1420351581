//! What this process uses, for its metrics.

use std::time::Duration;
use std::{fs, io};

use jiff::Timestamp;
use oarsman_core::stats::boot_time;
use rustix::process::{Resource, getrlimit};

use crate::processes::stat_fields;

/// The kernel counts for programs in hundredths of a second.
const TICKS_PER_SECOND: u32 = 100;

/// What this process uses at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessUsage {
    /// The processor time it has had.
    pub cpu: Duration,
    /// The memory that it has in RAM, in bytes.
    pub resident_bytes: u64,
    /// Its address space, in bytes.
    pub virtual_bytes: u64,
    /// Its open files and sockets.
    pub open_files: u64,
    /// How many of them it may have; none without a limit.
    pub max_open_files: Option<u64>,
    /// When it was started, in seconds since 1970.
    pub started: f64,
    /// The age of the machine when it was started.
    pub after_boot: Duration,
}

/// Reads what this process uses.
#[derive(Clone, Copy, Debug)]
pub struct ProcessReader {
    /// When the machine was started. Its file is long on machines with many processors, and read once.
    booted: Timestamp,
}

impl ProcessReader {
    /// A reader for this process.
    ///
    /// # Errors
    /// When /proc does not tell when the machine was started.
    pub fn new() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        boot_time(&text).map(|booted| Self { booted }).ok_or_else(|| unreadable("/proc/stat"))
    }

    /// What this process uses now.
    ///
    /// # Errors
    /// When /proc cannot be read.
    pub fn read(&self) -> io::Result<ProcessUsage> {
        let stat = fs::read_to_string("/proc/self/stat")?;
        let stat = ProcessStat::parse(&stat).ok_or_else(|| unreadable("/proc/self/stat"))?;
        // One of them is the directory itself.
        let open_files = fs::read_dir("/proc/self/fd")?.count().saturating_sub(1);
        Ok(ProcessUsage {
            cpu: Duration::from_secs(stat.cpu_ticks) / TICKS_PER_SECOND,
            resident_bytes: stat.resident_pages.saturating_mul(page_size()),
            virtual_bytes: stat.virtual_bytes,
            open_files: u64::try_from(open_files).unwrap_or(u64::MAX),
            max_open_files: getrlimit(Resource::Nofile).current,
            started: self.booted.as_second() as f64
                + stat.start_ticks as f64 / f64::from(TICKS_PER_SECOND),
            after_boot: Duration::from_secs(stat.start_ticks) / TICKS_PER_SECOND,
        })
    }
}

/// Fields of `/proc/self/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessStat {
    cpu_ticks: u64,
    /// Since the machine was started.
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl ProcessStat {
    fn parse(text: &str) -> Option<Self> {
        let (_, fields) = stat_fields(text)?;
        let field = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(11)?.checked_add(field(12)?)?,
            start_ticks: field(19)?,
            virtual_bytes: field(20)?,
            resident_pages: field(21)?,
        })
    }
}

fn page_size() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

fn unreadable(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not as expected"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn fields_are_read_from_where_the_kernel_puts_them() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 9 0 4711 1000 25 18446";
        let expected = ProcessStat {
            cpu_ticks: 42,
            start_ticks: 4711,
            virtual_bytes: 1000,
            resident_pages: 25,
        };
        assert_eq!(ProcessStat::parse(text), Some(expected));
        assert_eq!(ProcessStat::parse("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_has_what_the_kernel_says_elsewhere() {
        let reader = ProcessReader::new().unwrap();
        let before = reader.read().unwrap();
        let files: Vec<File> = (0..50).map(|_| File::open("/proc/self/stat").unwrap()).collect();
        let after = reader.read().unwrap();
        // Other tests of this process open and close files meanwhile, though not as many.
        assert!(after.open_files >= before.open_files + 25, "{before:?} {after:?}");
        drop(files);
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
        };
        let near = |bytes: u64, kib: u64| bytes / 1024 > kib / 2 && bytes / 1024 < kib * 2;
        assert!(near(after.resident_bytes, kib("VmRSS:")), "{after:?}");
        assert!(near(after.virtual_bytes, kib("VmSize:")), "{after:?}");
        assert!(after.cpu >= before.cpu);
        assert!(after.started > 1_600_000_000.0, "{after:?}");
    }
}
