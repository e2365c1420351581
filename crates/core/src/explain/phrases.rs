//! Times, exit codes and lists as people say them.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How long something took, in its largest unit of which there are at least two.
pub(super) fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (number, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7200 => (seconds / MINUTE, "minute"),
        7200..172_800 => (seconds / HOUR, "hour"),
        _ => (seconds / DAY, "day"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// `once`, `twice`, `3 count`.
pub(super) fn count(count: i32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

/// As the beginning of a sentence.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    first + letters.as_str()
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The number of the signal that an exit code stands for.
pub(super) fn signal_of(code: i32) -> Option<i32> {
    Some(code - 128).filter(|number| (1..=31).contains(number))
}

/// An exit code, with what it usually means.
pub(super) fn exit(code: i32) -> String {
    match (meaning(code), signal_of(code)) {
        (Some(meaning), _) => format!("exit code {code} ({meaning})"),
        (None, Some(number)) => format!("exit code {code} ({})", signal(number)),
        (None, None) => format!("exit code {code}"),
    }
}

fn meaning(code: i32) -> Option<&'static str> {
    Some(match code {
        0 => "success",
        1 => "an error of the program itself",
        2 => "often wrong arguments or a shell's syntax error",
        126 => "a command that may not be executed",
        127 => "a command that was not found",
        128 => "it could not be started",
        255 => "often an error without a number, or a file that is no program for this machine",
        _ => return None,
    })
}

/// A signal, with what it usually means.
pub(super) fn signal(number: i32) -> String {
    let known = match number {
        1 => "SIGHUP: its terminal went away",
        2 => "SIGINT: it was interrupted",
        3 => "SIGQUIT: it was asked to quit",
        4 => "SIGILL: the processor does not know an instruction of the program",
        6 => "SIGABRT: the program gave up by itself",
        7 => "SIGBUS: memory or a mapped file went away under it",
        8 => "SIGFPE: a calculation such as a division by zero",
        9 => "SIGKILL: somebody killed it",
        11 => "SIGSEGV: the program touched memory that is not its own",
        13 => "SIGPIPE: it wrote to somebody who had left",
        14 => "SIGALRM: its alarm rang",
        15 => "SIGTERM: it was asked to end",
        31 => "SIGSYS: a system call that its seccomp profile forbids",
        _ => return format!("signal {number}"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_their_largest_unit_with_at_least_two() {
        let rows = [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7199, "119 minutes"),
            (7200, "2 hours"),
            (172_799, "47 hours"),
            (172_800, "2 days"),
        ];
        for (seconds, expected) in rows {
            assert_eq!(human_duration(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn names_are_joined_as_in_a_sentence() {
        let names = ["a", "b", "c"].map(ToOwned::to_owned);
        let texts: Vec<String> = (0..=3).map(|count| list(&names[..count])).collect();
        assert_eq!(texts, ["", "a", "a and b", "a, b and c"]);
        assert_eq!([1, 2, 3].map(count), ["once", "twice", "3 times"]);
    }

    #[test]
    fn exit_codes_are_written_with_their_meaning() {
        let rows = [
            (0, "exit code 0 (success)"),
            (1, "exit code 1 (an error of the program itself)"),
            (3, "exit code 3"),
            (127, "exit code 127 (a command that was not found)"),
            (137, "exit code 137 (SIGKILL: somebody killed it)"),
            (139, "exit code 139 (SIGSEGV: the program touched memory that is not its own)"),
            (148, "exit code 148 (signal 20)"),
            (160, "exit code 160"),
            (254, "exit code 254"),
            (-1, "exit code -1"),
        ];
        for (code, expected) in rows {
            assert_eq!(exit(code), expected);
        }
    }
}
