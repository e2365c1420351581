//! Makes the program of a list of rules.
//!
//! The kernel passes the address of three words: kind and access, major number, minor number. A program answers 1 to allow and 0 to forbid. It looks at
//! the rules from the last to the first and takes out of the access what a rule allows: when nothing is left the answer is 1, and at the end it is 0.

use super::{DeviceAccess, DeviceKind, DeviceRule};

#[cfg(test)]
mod tests;

/// One instruction, the kernel's `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BpfInstruction {
    operation: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// `BPF_LDX | BPF_MEM | BPF_W`: a word of the memory at a register and an offset.
const LOAD_WORD: u8 = 0x61;
/// `BPF_ALU64 | BPF_AND | BPF_K`.
const AND: u8 = 0x57;
/// `BPF_ALU64 | BPF_XOR | BPF_K`.
const DIFFER: u8 = 0xa7;
/// `BPF_ALU64 | BPF_OR | BPF_X`.
const UNITE: u8 = 0x4f;
/// `BPF_ALU64 | BPF_RSH | BPF_K`.
const SHIFT_RIGHT: u8 = 0x77;
/// `BPF_ALU64 | BPF_MOV | BPF_K`.
const SET: u8 = 0xb7;
/// `BPF_ALU64 | BPF_MOV | BPF_X`.
const COPY: u8 = 0xbf;
/// `BPF_JMP | BPF_JNE | BPF_K`.
const JUMP_UNLESS_EQUAL: u8 = 0x55;
/// `BPF_JMP | BPF_JEQ | BPF_K`.
const JUMP_IF_EQUAL: u8 = 0x15;
/// `BPF_JMP | BPF_EXIT`.
const EXIT: u8 = 0x95;

/// The answer.
const ANSWER: u8 = 0;
/// The address of the words.
const WORDS: u8 = 1;
const SCRATCH: u8 = 2;
/// What is not decided yet of the access.
const LEFT: u8 = 3;
const WORD: u8 = 4;

const KIND_AND_ACCESS: i16 = 0;
const MAJOR: i16 = 4;
const MINOR: i16 = 8;

/// Which is in the lower half of the first word, below the access.
const KIND_BITS: i32 = 0xffff;
const ACCESS_SHIFT: i32 = 16;

impl BpfInstruction {
    fn new(operation: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Self {
        // Two fields of four bits, which compilers of C order as the machine does its bytes.
        let registers =
            if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        Self { operation, registers, offset, immediate }
    }

    fn on(operation: u8, register: u8, immediate: i32) -> Self {
        Self::new(operation, register, 0, 0, immediate)
    }

    fn load(to: u8, offset: i16) -> Self {
        Self::new(LOAD_WORD, to, WORDS, offset, 0)
    }

    fn exit() -> Self {
        Self::on(EXIT, 0, 0)
    }
}

/// Whether a list forbids nothing.
pub(super) fn allow_everything(rules: &[DeviceRule]) -> bool {
    rules.iter().rev().take_while(|rule| rule.allow).any(is_about_everything)
}

fn is_about_everything(rule: &DeviceRule) -> bool {
    *rule == DeviceRule::about_everything(rule.allow)
}

/// The program of a list of rules.
pub(super) fn generate(rules: &[DeviceRule]) -> Vec<BpfInstruction> {
    let mut program = vec![
        BpfInstruction::load(LEFT, KIND_AND_ACCESS),
        BpfInstruction::on(SHIFT_RIGHT, LEFT, ACCESS_SHIFT),
    ];
    for rule in rules.iter().rev() {
        program.extend(block(rule));
        if is_about_everything(rule) {
            // The kernel refuses what can never be reached.
            return program;
        }
    }
    program.extend(answer(false));
    program
}

fn answer(allow: bool) -> [BpfInstruction; 2] {
    [BpfInstruction::on(SET, ANSWER, i32::from(allow)), BpfInstruction::exit()]
}

/// The instructions of one rule, which jump behind the last of them when it is not about this device, or decides only a part.
fn block(rule: &DeviceRule) -> Vec<BpfInstruction> {
    let mut all = comparison(rule);
    all.extend(decision(rule));
    all.extend(answer(rule.allow));
    aim_jumps(all)
}

/// Jumps when the rule is about another device.
///
/// Words are loaded anew for each rule, and there is one jump however much is compared. Otherwise the kernel, which checks a program along all its ways,
/// would check the rest of it once for every combination of what rules before have found out, or have too many ways waiting.
fn comparison(rule: &DeviceRule) -> Vec<BpfInstruction> {
    let compared =
        [(KIND_AND_ACCESS, rule.kind.map(number)), (MAJOR, rule.major), (MINOR, rule.minor)];
    let compared = compared.into_iter().filter_map(|(offset, wanted)| Some((offset, wanted?)));
    let mut all = vec![BpfInstruction::on(SET, SCRATCH, 0)];
    for (offset, wanted) in compared {
        all.push(BpfInstruction::load(WORD, offset));
        if offset == KIND_AND_ACCESS {
            all.push(BpfInstruction::on(AND, WORD, KIND_BITS));
        }
        all.push(BpfInstruction::on(DIFFER, WORD, wanted));
        all.push(BpfInstruction::new(UNITE, SCRATCH, WORD, 0, 0));
    }
    match all.len() {
        1 => Vec::new(),
        _ => [all, vec![BpfInstruction::on(JUMP_UNLESS_EQUAL, SCRATCH, 0)]].concat(),
    }
}

/// Leads to the answer when it is decided by a rule for a part of all access.
fn decision(rule: &DeviceRule) -> Vec<BpfInstruction> {
    let DeviceAccess(access) = rule.access;
    match rule.allow {
        _ if rule.access == DeviceAccess::ALL => Vec::new(),
        true => vec![
            BpfInstruction::on(AND, LEFT, !access),
            BpfInstruction::on(JUMP_UNLESS_EQUAL, LEFT, 0),
        ],
        false => vec![
            BpfInstruction::new(COPY, SCRATCH, LEFT, 0, 0),
            BpfInstruction::on(AND, SCRATCH, access),
            BpfInstruction::on(JUMP_IF_EQUAL, SCRATCH, 0),
        ],
    }
}

/// Lets all jumps of a block lead behind it.
fn aim_jumps(mut block: Vec<BpfInstruction>) -> Vec<BpfInstruction> {
    // A jump of 0 leads to the next instruction.
    for (behind, instruction) in (0_i16..).zip(block.iter_mut().rev()) {
        if matches!(instruction.operation, JUMP_UNLESS_EQUAL | JUMP_IF_EQUAL) {
            instruction.offset = behind;
        }
    }
    block
}

/// As the kernel numbers kinds.
fn number(kind: DeviceKind) -> i32 {
    match kind {
        DeviceKind::Block => 1,
        DeviceKind::Character => 2,
    }
}
