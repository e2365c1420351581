//! Programs of a few system calls, as static ELF files: what a container is told by the kernel, without a library, a shell or a tool in its image.

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemCall {
    pub(crate) number: u32,
    pub(crate) arguments: &'static [CallArgument],
}

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallArgument {
    Value(u64),
    /// The address of a text.
    Text(&'static str),
    /// What the call before has given.
    Last,
}

const BASE: u64 = 0x40_0000;
const HEADERS: usize = 64 + 56;
/// `mov REGISTER, 64 bits` and `mov REGISTER, rax` for the six registers of arguments.
const LOAD: [[u8; 2]; 6] =
    [[0x48, 0xbf], [0x48, 0xbe], [0x48, 0xba], [0x49, 0xba], [0x49, 0xb8], [0x49, 0xb9]];
const TAKE_LAST: [[u8; 3]; 6] = [
    [0x48, 0x89, 0xc7],
    [0x48, 0x89, 0xc6],
    [0x48, 0x89, 0xc2],
    [0x49, 0x89, 0xc2],
    [0x49, 0x89, 0xc0],
    [0x49, 0x89, 0xc1],
];
/// Exits with 0 if the last call has worked, and with its error otherwise.
const EXIT: [u8; 17] = [
    0x48, 0x89, 0xc7, 0x48, 0xf7, 0xdf, 0x48, 0x85, 0xc0, 0x78, 0x02, 0x31, 0xff, 0x6a, 0x3c, 0x58,
    0x0f,
];

/// The file of a program for x86-64 that does these calls.
pub(crate) fn program(calls: &[SystemCall]) -> Vec<u8> {
    // Addresses of texts follow the code, whose length does not depend on them.
    let length = code(calls, 0).0.len();
    let (code, texts) = code(calls, BASE + (HEADERS + length) as u64);
    let size = (HEADERS + code.len() + texts.len()) as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    let half = |value: u16| value.to_le_bytes().to_vec();
    let word = |value: u32| value.to_le_bytes().to_vec();
    let long = |value: u64| value.to_le_bytes().to_vec();
    let header = [half(2), half(62), word(1), long(BASE + HEADERS as u64), long(64), long(0)];
    let sizes = [word(0), half(64), half(56), half(1), half(0), half(0), half(0)];
    // To be read and executed.
    let segment =
        [word(1), word(5), long(0), long(BASE), long(BASE), long(size), long(size), long(4096)];
    for part in header.into_iter().chain(sizes).chain(segment) {
        file.extend(part);
    }
    file.extend(code);
    file.extend(texts);
    file
}

fn code(calls: &[SystemCall], texts_at: u64) -> (Vec<u8>, Vec<u8>) {
    let (mut code, mut texts) = (Vec::new(), Vec::new());
    for call in calls {
        let registers = LOAD.into_iter().zip(TAKE_LAST);
        for (argument, (load, take_last)) in call.arguments.iter().zip(registers) {
            let value = match argument {
                CallArgument::Value(value) => *value,
                CallArgument::Text(text) => {
                    let at = texts_at + texts.len() as u64;
                    texts.extend_from_slice(text.as_bytes());
                    texts.push(0);
                    at
                }
                CallArgument::Last => {
                    code.extend(take_last);
                    continue;
                }
            };
            code.extend(load);
            code.extend(value.to_le_bytes());
        }
        // `mov eax, NUMBER` and `syscall`
        code.push(0xb8);
        code.extend(call.number.to_le_bytes());
        code.extend([0x0f, 0x05]);
    }
    code.extend(EXIT);
    code.push(0x05);
    (code, texts)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    fn exit_code(calls: &[SystemCall]) -> io::Result<Option<i32>> {
        let directory = std::env::temp_dir().join(format!("syscalls-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        let path = directory.join(format!("program-{}", calls.len()));
        fs::write(&path, program(calls))?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        let status = Command::new(&path).status()?;
        fs::remove_dir_all(&directory)?;
        Ok(status.code())
    }

    #[test]
    fn a_program_exits_with_the_error_of_its_last_call() {
        let open = |path| SystemCall { number: 2, arguments: path };
        let missing = open(&[CallArgument::Text("/no/such/file"), CallArgument::Value(0)]);
        assert_eq!(exit_code(&[missing]).unwrap(), Some(2));
        let there = open(&[CallArgument::Text("/dev/null"), CallArgument::Value(0)]);
        let close = SystemCall { number: 3, arguments: &[CallArgument::Last] };
        assert_eq!(exit_code(&[missing, there, close]).unwrap(), Some(0));
    }
}
