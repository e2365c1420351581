//! The calls of bpf(2) for programs that control devices.

use std::ffi::c_long;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::program::BpfInstruction;

const LOAD: c_long = 5;
const ATTACH: c_long = 8;
const DETACH: c_long = 9;
const OPEN_BY_ID: c_long = 13;
const QUERY: c_long = 16;

/// `BPF_PROG_TYPE_CGROUP_DEVICE`.
const DEVICE_PROGRAM: u32 = 15;
/// `BPF_CGROUP_DEVICE`.
const AT_DEVICES: u32 = 6;
/// `BPF_F_ALLOW_MULTI`: the group and those below it may have more programs, of which each can forbid.
const BESIDE_OTHERS: u32 = 2;
/// As many as a group can have.
const MOST_PROGRAMS: usize = 64;
/// The kernel interrupts its check of a program for a signal.
const MOST_TRIES: usize = 5;

/// As tools that list programs show it.
const NAME: [u8; 16] = *b"oarsman_devices\0";

#[repr(C)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
struct AttachAttributes {
    group: u32,
    program: u32,
    place: u32,
    flags: u32,
}

#[repr(C)]
struct QueryAttributes {
    group: u32,
    place: u32,
    query_flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    padding: u32,
    /// Fields that we do not use, but that a newer kernel writes to.
    newer: [u64; 4],
}

#[repr(C)]
struct OpenAttributes {
    id: u32,
    next_id: u32,
    flags: u32,
}

/// Calls the kernel.
///
/// # Safety
/// The attributes have to be those of the command, of plain numbers without gaps, and addresses in them those of memory that the command may use so.
#[expect(unsafe_code, reason = "rustix has no bpf")]
unsafe fn bpf<T>(command: c_long, attributes: &mut T) -> io::Result<i32> {
    let size = size_of::<T>();
    // SAFETY: the attributes live until the call returns, and their size is told; the rest is promised by the caller.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size) };
    match i32::try_from(result) {
        Ok(result) if result >= 0 => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the kernel check and take a program.
pub(super) fn load(instructions: &[BpfInstruction]) -> io::Result<OwnedFd> {
    let too_long = || io::Error::from_raw_os_error(libc::E2BIG);
    let mut attributes = LoadAttributes {
        kind: DEVICE_PROGRAM,
        count: u32::try_from(instructions.len()).map_err(|_| too_long())?,
        instructions: address(instructions.as_ptr()),
        license: address(c"Apache-2.0".as_ptr()),
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: NAME,
    };
    let mut tries = 1;
    loop {
        #[expect(unsafe_code, reason = "the compiler cannot check addresses in numbers")]
        // SAFETY: the addresses are those of `count` instructions and of a string that ends with a zero; both are only read.
        let loaded = unsafe { bpf(LOAD, &mut attributes) };
        match loaded {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < MOST_TRIES => {
                tries += 1;
            }
            loaded => return loaded.map(owned),
        }
    }
}

/// Adds a program to those of a group.
pub(super) fn attach(group: &File, program: &OwnedFd) -> io::Result<()> {
    at_group(ATTACH, group, program, BESIDE_OTHERS)
}

/// Takes a program away from a group.
pub(super) fn detach(group: &File, program: &OwnedFd) -> io::Result<()> {
    at_group(DETACH, group, program, 0)
}

fn at_group(command: c_long, group: &File, program: &OwnedFd, flags: u32) -> io::Result<()> {
    let (group, program) = (number(group), number(program));
    let mut attributes = AttachAttributes { group, program, place: AT_DEVICES, flags };
    #[expect(unsafe_code, reason = "the compiler cannot check which attributes a command has")]
    // SAFETY: these are the attributes of both commands, and there are no addresses in them.
    let done = unsafe { bpf(command, &mut attributes) };
    done.map(drop)
}

/// The programs of a group, without those of groups above.
pub(super) fn attached(group: &File) -> io::Result<Vec<OwnedFd>> {
    let mut ids = [0_u32; MOST_PROGRAMS];
    let mut attributes = QueryAttributes {
        group: number(group),
        place: AT_DEVICES,
        query_flags: 0,
        attach_flags: 0,
        ids: address(ids.as_mut_ptr()),
        count: u32::try_from(MOST_PROGRAMS).unwrap_or_default(),
        padding: 0,
        newer: [0; 4],
    };
    #[expect(unsafe_code, reason = "the compiler cannot check addresses in numbers")]
    // SAFETY: the address is that of `count` numbers, which are ours alone and which the kernel writes to.
    unsafe { bpf(QUERY, &mut attributes) }?;
    let count = usize::try_from(attributes.count).unwrap_or(MOST_PROGRAMS);
    ids.into_iter().take(count).map(open).collect()
}

fn open(id: u32) -> io::Result<OwnedFd> {
    let mut attributes = OpenAttributes { id, next_id: 0, flags: 0 };
    #[expect(unsafe_code, reason = "the compiler cannot check which attributes a command has")]
    // SAFETY: these are the attributes of the command, and there are no addresses in them.
    let opened = unsafe { bpf(OPEN_BY_ID, &mut attributes) };
    opened.map(owned)
}

/// The kernel closes such descriptors when a program is executed.
fn owned(number: i32) -> OwnedFd {
    #[expect(unsafe_code, reason = "the call gives a number")]
    // SAFETY: the kernel has just made this descriptor for us, and nothing else knows its number.
    unsafe {
        OwnedFd::from_raw_fd(number)
    }
}

fn number(file: &impl AsRawFd) -> u32 {
    file.as_raw_fd().cast_unsigned()
}

fn address<T>(of: *const T) -> u64 {
    u64::try_from(of.expose_provenance()).unwrap_or_default()
}
