//! Reads processes from /proc.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;
use std::{fs, io};

use rustix::process::{PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// The kernel counts processor time for programs in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// Fields of `/proc/<pid>/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number in the namespace of the /proc that was read.
    pub pid: u32,
    /// The name of its program, at most 15 bytes of it.
    pub name: String,
    /// One letter: `R`unning, `S`leeping, `T` stopped, `Z`ombie and so on.
    pub state: char,
    /// Its parent; 0 if that is outside of this namespace.
    pub parent: u32,
    /// When it started, in clock ticks since boot: with the pid it names a process for good.
    pub started: u64,
}

/// Splits the text of a `/proc/<pid>/stat` file into what is before the end of the name, and the fields after it: the third of proc(5) is the first.
///
/// The name stands in parentheses and may itself hold spaces and parentheses, so the last closing
/// one ends it.
pub(crate) fn stat_fields(text: &str) -> Option<(&str, Vec<&str>)> {
    let (head, rest) = text.rsplit_once(") ")?;
    Some((head, rest.split_ascii_whitespace().collect()))
}

/// Reads the text of a `/proc/<pid>/stat` file; none if it is not one.
pub fn parse_stat(text: &[u8]) -> Option<Process> {
    let text = String::from_utf8_lossy(text);
    let (head, fields) = stat_fields(&text)?;
    let (pid, name) = head.split_once(" (")?;
    Some(Process {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// Every process of this pid namespace, by pid.
///
/// # Errors
/// When /proc cannot be listed. Processes that end meanwhile are left out.
pub fn list() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        found.extend(find(pid));
    }
    found.sort_by_key(|process| process.pid);
    Ok(found)
}

/// One process; none if there is no such one (any more).
pub fn find(pid: u32) -> Option<Process> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The processor time a process has had, in user mode and in the kernel.
///
/// # Errors
/// When there is no such process.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    ticks(&stat).map(|ticks| TICK * ticks).ok_or_else(|| not_understood(&stat))
}

/// The 14th and 15th field, counted from the end of the name.
fn ticks(stat: &str) -> Option<u32> {
    let (_, fields) = stat_fields(stat)?;
    let (user, kernel): (u32, u32) = (fields.get(11)?.parse().ok()?, fields.get(12)?.parse().ok()?);
    user.checked_add(kernel)
}

/// The memory of a process in bytes, with its share of what it has in common with others.
///
/// # Errors
/// When there is no such process, or it belongs to another user.
pub fn pss(pid: u32) -> io::Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    kibibytes(&rollup).map(|size| size * 1024).ok_or_else(|| not_understood(&rollup))
}

fn kibibytes(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn not_understood(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("cannot read {text:?}"))
}

/// The arguments a process was started with; none of them for a kernel thread, a zombie, or one
/// that is gone.
pub fn arguments(pid: u32) -> Vec<OsString> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = text.strip_suffix(b"\0").unwrap_or(&text);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(|byte| *byte == 0).map(|argument| OsString::from_vec(argument.to_vec())).collect()
}

/// `roots` and all their descendants among `processes`.
pub fn family(processes: &[Process], roots: &[u32]) -> Vec<u32> {
    let mut members = roots.to_vec();
    let mut next = 0;
    while let Some(parent) = members.get(next).copied() {
        let children = processes.iter().filter(|process| process.parent == parent);
        let new: Vec<u32> =
            children.map(|child| child.pid).filter(|pid| !members.contains(pid)).collect();
        members.extend(new);
        next += 1;
    }
    members
}

/// Kills all processes of a group that is named after its first process; one that has ended already is none.
pub fn kill_group(leader: u32) {
    let leader = i32::try_from(leader).ok().and_then(rustix::process::Pid::from_raw);
    // What is gone needs no signal.
    leader.map(|leader| kill_process_group(leader, Signal::KILL).ok());
}

/// Kills all processes that were started with this variable, and returns how many there were. A process that has just been killed still counts.
///
/// # Errors
/// When /proc cannot be listed.
pub fn kill_by_variable(name: &str, value: &str) -> io::Result<usize> {
    let wanted = format!("{name}={value}");
    let pids = list()?.into_iter().filter_map(|process| i32::try_from(process.pid).ok());
    let killed = pids.filter_map(rustix::process::Pid::from_raw).filter(|pid| {
        // Opened first: by the descriptor the process that was looked at is killed, and no other that has its number since.
        let Ok(process) = pidfd_open(*pid, PidfdFlags::empty()) else { return false };
        let is_wanted = has_variable(*pid, wanted.as_bytes());
        is_wanted && pidfd_send_signal(process, Signal::KILL).is_ok()
    });
    Ok(killed.count())
}

/// Whether a process was started with this variable; not if it has ended.
fn has_variable(pid: rustix::process::Pid, wanted: &[u8]) -> bool {
    let text = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    text.split(|byte| *byte == 0).any(|variable| variable == wanted)
}

/// The signal of that number, a real-time one too; none if there is no such signal, or if the C library keeps it for itself.
pub fn signal_of(number: i32) -> Option<Signal> {
    let real_time = 34..=64;
    if !real_time.contains(&number) {
        return Signal::from_named_raw(number);
    }
    #[expect(unsafe_code, reason = "rustix names no real-time signals")]
    // SAFETY: the kernel has this signal, and it is none of those that the C library uses (32 and 33).
    Some(unsafe { Signal::from_raw_unchecked(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 2 3";

    #[test]
    fn a_process_name_may_contain_spaces_and_parentheses() {
        for name in ["sh", "a b", "(sd-pam)", ") S 1 (", "x) R 7 7"] {
            let text = format!("12 ({name}) S 3 12 12 {TAIL}\n");
            let expected =
                Process { pid: 12, name: name.to_owned(), state: 'S', parent: 3, started: 4711 };
            assert_eq!(parse_stat(text.as_bytes()), Some(expected));
        }
    }

    #[test]
    fn a_text_that_is_no_stat_file_gives_none() {
        for text in ["", "12", "12 (sh)", "12 (sh) S 3", "x (sh) S 3"] {
            assert_eq!(parse_stat(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn descendants_are_found_whatever_the_order_of_pids() {
        let process =
            |pid, parent| Process { pid, name: String::new(), state: 'S', parent, started: 0 };
        let all = [process(2, 9), process(5, 2), process(9, 1), process(7, 1), process(1, 0)];
        assert_eq!(family(&all, &[9]), [9, 2, 5]);
        assert_eq!(family(&all, &[7, 404]), [7, 404]);
    }

    #[test]
    fn figures_are_read_from_where_the_kernel_puts_them() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 12 30 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
        let rollup = "55-7f ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss:      512 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(kibibytes(rollup), Some(512));
        let own = std::process::id();
        assert!(pss(own).unwrap() > 1024);
        cpu_time(own).unwrap();
    }

    #[test]
    fn processes_are_killed_by_a_variable_of_their_environment() {
        let value = format!("value-{}", std::process::id());
        let start = |value: &str| {
            let mut command = std::process::Command::new("sleep");
            command.arg("600").env("OARSMAN_TEST_VARIABLE", value).spawn().unwrap()
        };
        let (mut one, mut other) = (start(&value), start(&format!("{value}-other")));
        assert_eq!(kill_by_variable("OARSMAN_TEST_VARIABLE", &value).unwrap(), 1);
        one.wait().unwrap();
        assert_eq!(kill_by_variable("OARSMAN_TEST_VARIABLE", &value).unwrap(), 0);
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn signals_have_the_kernels_numbers() {
        assert_eq!(signal_of(15), Some(Signal::TERM));
        assert_eq!(signal_of(37).map(Signal::as_raw), Some(37));
        for number in [-1, 0, 32, 33, 65] {
            assert_eq!(signal_of(number), None);
        }
    }

    #[test]
    fn this_process_is_listed_with_its_arguments() {
        let own = std::process::id();
        let started = find(own).unwrap().started;
        let is_own = |process: &Process| (process.pid, process.started) == (own, started);
        assert!(list().unwrap().iter().any(is_own));
        let expected: Vec<OsString> = std::env::args_os().collect();
        assert_eq!(arguments(own), expected);
    }
}
