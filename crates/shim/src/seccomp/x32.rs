//! Calls of x32, the second set of numbers of x86-64: the same calls with a bit more in their numbers. A profile that forbids some calls and allows
//! the rest would allow all of these.

use seccompiler::{BpfProgram, sock_filter};

/// The architecture of 64-bit programs, x32 among them.
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const X32_BIT: u32 = 0x4000_0000;
/// What a tracer sets to have a call skipped.
const SKIPPED: u32 = u32::MAX;
/// Where the kernel has number and architecture of a call.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;

/// A filter that kills a process which makes such a call, as libseccomp does for an architecture that a profile does not list.
pub(super) fn refused() -> BpfProgram {
    let step = |code, k| sock_filter { code, jt: 0, jf: 0, k };
    vec![
        step(LOAD, ARCHITECTURE),
        sock_filter { jf: 3, ..step(JUMP_IF_EQUAL, AUDIT_ARCH_X86_64) },
        step(LOAD, NUMBER),
        sock_filter { jt: 1, ..step(JUMP_IF_EQUAL, SKIPPED) },
        sock_filter { jt: 1, ..step(JUMP_IF_AT_LEAST, X32_BIT) },
        step(RETURN, ALLOW),
        step(RETURN, KILL_PROCESS),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does with a call.
    fn answer(architecture: u32, number: u32) -> u32 {
        let program = refused();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            at += 1;
            let is_met = match code {
                LOAD => {
                    loaded = if k == NUMBER { number } else { architecture };
                    continue;
                }
                RETURN => return k,
                JUMP_IF_EQUAL => loaded == k,
                _ => loaded >= k,
            };
            at += usize::from(if is_met { jt } else { jf });
        }
    }

    #[test]
    fn numbers_of_x32_kill_and_all_others_pass() {
        for (architecture, number, wanted) in [
            (AUDIT_ARCH_X86_64, 83, ALLOW),
            (AUDIT_ARCH_X86_64, X32_BIT - 1, ALLOW),
            (AUDIT_ARCH_X86_64, X32_BIT | 83, KILL_PROCESS),
            (AUDIT_ARCH_X86_64, X32_BIT, KILL_PROCESS),
            (AUDIT_ARCH_X86_64, SKIPPED - 1, KILL_PROCESS),
            (AUDIT_ARCH_X86_64, SKIPPED, ALLOW),
            // Of 32-bit programs the other filters decide.
            (0x4000_0003, X32_BIT | 83, ALLOW),
        ] {
            assert_eq!(answer(architecture, number), wanted, "{architecture:x} {number:x}");
        }
    }
}
