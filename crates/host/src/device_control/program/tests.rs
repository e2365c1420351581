//! Programs are executed here, by as much of the kernel's machine as they need.

use proptest::prelude::*;

use super::*;

/// An access to a device, as the kernel asks about it.
#[derive(Clone, Copy, Debug)]
struct Question {
    kind: DeviceKind,
    major: i32,
    minor: i32,
    access: DeviceAccess,
}

impl Question {
    fn words(self) -> [u32; 3] {
        let first = number(self.kind) | self.access.0 << ACCESS_SHIFT;
        [first, self.major, self.minor].map(i32::cast_unsigned)
    }
}

/// Executes a program, as the kernel describes its machine. Panics where the kernel would refuse the program.
fn execute(program: &[BpfInstruction], words: [u32; 3]) -> u64 {
    let mut registers: [Option<u64>; 11] = [None; 11];
    registers[usize::from(WORDS)] = Some(0);
    let mut at = 0_usize;
    for _ in 0..=program.len() {
        let one = program[at];
        let (to, from) = (usize::from(one.registers & 0xf), usize::from(one.registers >> 4));
        let value = |register: usize| registers[register].expect("it was never set");
        let immediate = i64::from(one.immediate).cast_unsigned();
        let mut jumps = false;
        match one.operation {
            LOAD_WORD => {
                assert_eq!(from, usize::from(WORDS), "only the words can be read");
                registers[to] = Some(u64::from(words[usize::try_from(one.offset).unwrap() / 4]));
            }
            AND => registers[to] = Some(value(to) & immediate),
            DIFFER => registers[to] = Some(value(to) ^ immediate),
            UNITE => registers[to] = Some(value(to) | value(from)),
            SHIFT_RIGHT => registers[to] = Some(value(to) >> immediate),
            SET => registers[to] = Some(immediate),
            COPY => registers[to] = Some(value(from)),
            JUMP_UNLESS_EQUAL => jumps = value(to) != immediate,
            JUMP_IF_EQUAL => jumps = value(to) == immediate,
            EXIT => return value(usize::from(ANSWER)),
            other => panic!("no program of ours has operation {other:#x}"),
        }
        let behind = usize::try_from(one.offset).unwrap();
        at += if jumps { 1 + behind } else { 1 };
    }
    panic!("a program without loops ends after as many steps as it has instructions");
}

/// What the rules say, without a program: each kind of access is decided by the last rule about it.
fn is_allowed(rules: &[DeviceRule], question: Question) -> bool {
    let is_about = |rule: &&DeviceRule, access: i32| {
        rule.kind.is_none_or(|kind| kind == question.kind)
            && rule.major.is_none_or(|major| major == question.major)
            && rule.minor.is_none_or(|minor| minor == question.minor)
            && rule.access.0 & access != 0
    };
    let mut asked = [1, 2, 4].into_iter().filter(|access| question.access.0 & access != 0);
    asked.all(|access| {
        rules.iter().rev().find(|rule| is_about(rule, access)).is_some_and(|rule| rule.allow)
    })
}

/// A rule as a line of v1's files: `+c 1:3 rw`, `-a`.
fn rule(text: &str) -> DeviceRule {
    let (allow, text) = (text.starts_with('+'), &text[1..]);
    if text == "a" {
        return DeviceRule::about_everything(allow);
    }
    let fields: Vec<&str> = text.split([' ', ':']).collect();
    let number = |text: &str| (text != "*").then(|| text.parse().unwrap());
    DeviceRule {
        allow,
        kind: Some(kind(fields[0])),
        major: number(fields[1]),
        minor: number(fields[2]),
        access: DeviceAccess::parse(fields[3]).unwrap(),
    }
}

fn kind(letter: &str) -> DeviceKind {
    if letter == "b" { DeviceKind::Block } else { DeviceKind::Character }
}

fn rules(texts: &[&str]) -> Vec<DeviceRule> {
    texts.iter().map(|text| rule(text)).collect()
}

fn question(text: &str) -> Question {
    let rule = rule(&format!("+{text}"));
    let (major, minor) = (rule.major.unwrap(), rule.minor.unwrap());
    Question { kind: rule.kind.unwrap(), major, minor, access: rule.access }
}

#[test]
fn the_last_rule_about_an_access_decides_it() {
    let rows: [(&[&str], &str, bool); 24] = [
        (&[], "c 1:3 r", false),
        (&["+a"], "b 254:0 rwm", true),
        (&["-a"], "c 1:3 r", false),
        (&["+a", "-a"], "c 1:3 r", false),
        (&["-a", "+a"], "c 1:3 r", true),
        (&["-a", "+c 1:3 rwm"], "c 1:3 rw", true),
        (&["-a", "+c 1:3 rwm"], "c 1:5 r", false),
        (&["-a", "+c 1:3 rwm"], "c 2:3 r", false),
        (&["-a", "+c 1:3 rwm"], "b 1:3 r", false),
        (&["+c 1:3 rwm", "-a"], "c 1:3 r", false),
        (&["+c *:* m"], "c 77:1000 m", true),
        (&["+c *:* m"], "c 77:1000 r", false),
        (&["+c *:* m"], "b 254:0 m", false),
        (&["+c 136:* rwm"], "c 136:1048575 rw", true),
        (&["+c *:3 r"], "c 9:3 r", true),
        // Each kind of access may be allowed by another rule.
        (&["+c 1:3 r", "+c 1:3 w"], "c 1:3 rw", true),
        (&["+c 1:3 r"], "c 1:3 rw", false),
        // One that is forbidden forbids all of an access that has it.
        (&["+a", "-c 1:3 w"], "c 1:3 r", true),
        (&["+a", "-c 1:3 w"], "c 1:3 rw", false),
        (&["+a", "-c 1:3 w", "+c *:* rw"], "c 1:3 rw", true),
        (&["+a", "-b *:* rw"], "b 254:0 m", true),
        (&["+a", "-b *:* rw"], "b 254:0 r", false),
        // The greatest numbers of the kernel.
        (&["+b 4095:1048575 rwm"], "b 4095:1048575 r", true),
        (&["+b 2147483647:0 r", "-b 0:0 r"], "b 2147483647:0 r", true),
    ];
    for (texts, asked, expected) in rows {
        let (rules, asked) = (rules(texts), question(asked));
        assert_eq!(is_allowed(&rules, asked), expected, "{texts:?} of {asked:?}");
        let answer = execute(&generate(&rules), asked.words());
        assert_eq!(answer, u64::from(expected), "{texts:?} of {asked:?}");
    }
}

#[test]
fn to_ask_for_nothing_is_allowed_where_something_is() {
    let rows: [(&[&str], u64); 4] =
        [(&[], 0), (&["+c 1:3 r"], 1), (&["+c 1:5 r"], 0), (&["+a", "-c 1:3 rwm"], 0)];
    for (texts, expected) in rows {
        let words = Question { access: DeviceAccess(0), ..question("c 1:3 r") }.words();
        assert_eq!(execute(&generate(&rules(texts)), words), expected, "{texts:?}");
    }
}

#[test]
fn an_access_that_no_kernel_has_yet_is_forbidden_by_a_rule_about_a_part() {
    let words = |access| Question { access: DeviceAccess(access), ..question("c 1:3 r") }.words();
    let program = generate(&rules(&["+c 1:3 rw"]));
    assert_eq!([2, 4, 6, 8, 10].map(|access| execute(&program, words(access))), [1, 1, 1, 0, 0]);
}

#[test]
fn a_list_that_forbids_nothing_is_told_from_others() {
    let rows: [(&[&str], bool); 7] = [
        (&[], false),
        (&["+a"], true),
        (&["-a", "+a"], true),
        (&["-c 1:3 r", "+a", "+c 1:3 r"], true),
        (&["+a", "-c 1:3 r"], false),
        (&["+a", "-c 1:3 r", "+c 1:3 r"], false),
        (&["+b *:* rwm", "+c *:* rwm"], false),
    ];
    for (texts, expected) in rows {
        assert_eq!(allow_everything(&rules(texts)), expected, "{texts:?}");
    }
}

#[test]
fn access_is_read_from_letters() {
    let rows = [("", Some(0)), ("m", Some(1)), ("rw", Some(6)), ("rwmr", Some(7)), ("rx", None)];
    for (letters, expected) in rows {
        assert_eq!(DeviceAccess::parse(letters).map(|access| access.0), expected, "{letters}");
    }
}

fn any_kind() -> impl Strategy<Value = DeviceKind> {
    prop_oneof![Just(DeviceKind::Block), Just(DeviceKind::Character)]
}

fn any_rule() -> impl Strategy<Value = DeviceRule> {
    // Few numbers, so that rules are about the same devices.
    let numbers = (prop::option::of(0..3), prop::option::of(0..3));
    let some = (any::<bool>(), prop::option::of(any_kind()), numbers, 0..8);
    let some = some.prop_map(|(allow, kind, (major, minor), access)| {
        let access = DeviceAccess(access);
        DeviceRule { allow, kind, major, minor, access }
    });
    prop_oneof![9 => some, 1 => any::<bool>().prop_map(DeviceRule::about_everything)]
}

proptest! {
    /// A program answers as its rules say, whatever they are and whatever is asked.
    #[test]
    fn a_program_answers_as_its_rules_say(
        rules in prop::collection::vec(any_rule(), 0..12),
        kind in any_kind(),
        (major, minor) in (0..4, 0..4),
    ) {
        let program = generate(&rules);
        for access in 1..8 {
            let question = Question { kind, major, minor, access: DeviceAccess(access) };
            let allowed = is_allowed(&rules, question);
            prop_assert_eq!(execute(&program, question.words()), u64::from(allowed));
            prop_assert!(allowed || !allow_everything(&rules));
        }
    }
}
