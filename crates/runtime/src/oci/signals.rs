//! The signal that asks a container to stop.

use oarsman_cri_types::v1::Signal;

const SIGTERM: i32 = 15;
const SIGRTMIN: i32 = 34;
const SIGRTMAX: i32 = 64;

/// Names and numbers on the machines that we are built for, which agree on these.
const NUMBERS: [(&str, i32); 33] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("IOT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// The signal of a container: its own, else its image's, else SIGTERM.
pub(crate) fn stop_signal(asked: Signal, of_image: &str) -> i32 {
    let own = (asked != Signal::RuntimeDefault).then(|| number(asked.as_str_name())).flatten();
    own.or_else(|| number(of_image)).unwrap_or(SIGTERM)
}

/// A number as CRI shows it.
pub(crate) fn shown(wanted: i32) -> Signal {
    // Of two names of one number, the first is the usual one.
    let all = (1..).map_while(|value| Signal::try_from(value).ok());
    let is_it = |signal: &Signal| number(signal.as_str_name()) == Some(wanted);
    all.into_iter().find(is_it).unwrap_or_default()
}

/// The number of a signal by name, with or without `SIG`, or by number.
fn number(name: &str) -> Option<i32> {
    let upper = name.trim().to_ascii_uppercase().replace("MINUS", "-").replace("PLUS", "+");
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Some(rest) = short.strip_prefix("RTMIN") {
        return real_time(SIGRTMIN, rest);
    }
    if let Some(rest) = short.strip_prefix("RTMAX") {
        return real_time(SIGRTMAX, rest);
    }
    let short = if short == "POLL" { "IO" } else { short };
    let known = NUMBERS.iter().find(|(known, _)| *known == short).map(|(_, number)| *number);
    known.or_else(|| short.parse().ok().filter(|number| (1..=SIGRTMAX).contains(number)))
}

fn real_time(from: i32, rest: &str) -> Option<i32> {
    let offset = if rest.is_empty() { 0 } else { rest.parse::<i32>().ok()? };
    Some(from.saturating_add(offset)).filter(|number| (SIGRTMIN..=SIGRTMAX).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_containers_signal_is_its_own_then_the_images_then_sigterm() {
        let rows = [
            (Signal::RuntimeDefault, "", 15),
            (Signal::RuntimeDefault, "SIGQUIT", 3),
            (Signal::RuntimeDefault, "quit", 3),
            (Signal::RuntimeDefault, "10", 10),
            (Signal::RuntimeDefault, "SIGRTMIN+3", 37),
            (Signal::RuntimeDefault, "SIGRTMAX-1", 63),
            (Signal::RuntimeDefault, "nonsense", 15),
            (Signal::RuntimeDefault, "0", 15),
            (Signal::Sigusr1, "SIGQUIT", 10),
            (Signal::Sigpoll, "", 29),
            (Signal::Sigrtmin, "", 34),
        ];
        for (asked, of_image, wanted) in rows {
            assert_eq!(stop_signal(asked, of_image), wanted, "{asked:?} {of_image:?}");
        }
    }

    #[test]
    fn a_number_is_shown_by_its_usual_name() {
        let rows = [
            (15, Signal::Sigterm),
            (6, Signal::Sigabrt),
            (17, Signal::Sigchld),
            (29, Signal::Sigio),
            (37, Signal::Sigrtminplus3),
            (64, Signal::Sigrtmax),
            (0, Signal::RuntimeDefault),
        ];
        for (number, expected) in rows {
            assert_eq!(shown(number), expected, "{number}");
        }
    }

    #[test]
    fn every_signal_of_cri_has_a_number() {
        for number in 1..=65 {
            let signal = Signal::try_from(number).unwrap();
            assert!(super::number(signal.as_str_name()).is_some(), "{signal:?}");
        }
    }
}
