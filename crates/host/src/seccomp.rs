//! Installs seccomp filters in this thread.

use std::io;

/// One instruction of a filter, the kernel's `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterInstruction {
    /// What it does.
    pub code: u16,
    /// How far it jumps when its condition holds.
    pub jump_true: u8,
    /// How far it jumps otherwise.
    pub jump_false: u8,
    /// Its operand.
    pub operand: u32,
}

/// The kernel's `struct sock_fprog`.
#[repr(C)]
struct FilterProgram {
    length: u16,
    instructions: *const FilterInstruction,
}

/// Adds a filter to those of this thread, for good. It neither sets nor needs `no_new_privs` where we have `CAP_SYS_ADMIN`.
///
/// # Errors
/// When the program is too long or not a valid one, or we have neither `CAP_SYS_ADMIN` nor `no_new_privs`.
pub fn install_filter(instructions: &[FilterInstruction]) -> io::Result<()> {
    let length = u16::try_from(instructions.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the filter is too long"))?;
    let program = FilterProgram { length, instructions: instructions.as_ptr() };
    #[expect(unsafe_code, reason = "rustix has no seccomp filters")]
    // SAFETY: the program points to `length` instructions that live until the call returns; the kernel copies and checks them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::c_ulong::from(0_u8),
            &raw const program,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_never_returns_is_refused() {
        // BPF_LD | BPF_W | BPF_ABS of the number of the call, and no return after it.
        let load = FilterInstruction { code: 0x20, jump_true: 0, jump_false: 0, operand: 0 };
        assert!(install_filter(&[load]).is_err());
    }
}
