//! What `ps` shows as the arguments of this process, for one that was forked and executes no program.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use crate::processes::stat_fields;

/// Where the arguments lie in the memory of a process: fields of `/proc/<pid>/stat`, counted from the one after the name.
const ARG_START: usize = 45;
const ARG_END: usize = 46;

/// An argument that makes room for the title that a process or its children will have. Shown are at most as many bytes as it was started with.
pub fn room() -> String {
    "-".repeat(ROOM)
}

/// The paths of a sandbox and the ids of a container fit into it.
const ROOM: usize = 1024;

/// Replaces the arguments that this process shows. What does not fit is cut off.
///
/// # Errors
/// When /proc does not tell where they are, or they cannot be written.
pub fn set<'a>(arguments: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let place = place(&stat).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let shown = shown(arguments, place.length);
    // By the file, as a debugger would: the kernel checks where it goes.
    File::options().write(true).open("/proc/self/mem")?.write_all_at(&shown, place.start)
}

/// A part of this process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ArgumentsPlace {
    start: u64,
    length: usize,
}

fn place(stat: &str) -> Option<ArgumentsPlace> {
    let (_, fields) = stat_fields(stat)?;
    let field = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let (start, end) = (field(ARG_START)?, field(ARG_END)?);
    let length = usize::try_from(end.checked_sub(start)?).ok()?;
    (length > 0).then_some(ArgumentsPlace { start, length })
}

/// Each argument ends with a zero. The last byte of all has to be one: without it, the kernel would show the environment, too.
fn shown<'a>(arguments: impl IntoIterator<Item = &'a str>, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    for argument in arguments {
        bytes.extend_from_slice(argument.as_bytes());
        bytes.push(0);
    }
    bytes.truncate(length - 1);
    bytes.resize(length, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_cut_and_filled_to_the_room_that_there_is() {
        assert_eq!(shown(["a", "bc"], 8), b"a\0bc\0\0\0\0");
        assert_eq!(shown(["a", "bc"], 5), b"a\0bc\0");
        assert_eq!(shown(["a", "bc"], 4), b"a\0b\0");
        assert_eq!(shown([], 1), b"\0");
    }

    #[test]
    fn the_place_is_read_from_where_the_kernel_puts_it() {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let found = place(&stat).unwrap();
        let mut bytes = vec![0; found.length];
        File::open("/proc/self/mem").unwrap().read_exact_at(&mut bytes, found.start).unwrap();
        assert_eq!(bytes, fs::read("/proc/self/cmdline").unwrap());
        assert_eq!(place("7 (a) S 1 2 3"), None);
    }
}
