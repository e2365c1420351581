//! Facts about termination messages, and that no bytes make them too long.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

fn exit(code: i32, reason: &str) -> Exit {
    Exit {
        started_at: None,
        finished_at: Timestamp::UNIX_EPOCH,
        code,
        reason: reason.to_owned(),
        message: String::new(),
    }
}

fn label(policy: &str) -> ContainerLabel {
    ContainerLabel { termination_message_policy: policy.to_owned(), ..ContainerLabel::default() }
}

#[test]
fn the_log_stands_in_only_for_an_unwritten_message_of_a_failed_container_that_asked_for_it() {
    let fallback = "FallbackToLogsOnError";
    let rows = [
        (fallback, 1, "Error", "", true),
        (fallback, 137, "OOMKilled", "", true),
        (fallback, 1, "Error", "written", false),
        (fallback, 0, "Completed", "", false),
        (fallback, 128, "ContainerCannotRun", "", false),
        ("File", 1, "Error", "", false),
        ("", 1, "Error", "", false),
    ];
    for (policy, code, reason, written, expected) in rows {
        let got = needs_log(&label(policy), &exit(code, reason), written);
        assert_eq!(got, expected, "{policy} {code} {reason} {written:?}");
    }
}

#[test]
fn a_file_gives_its_last_4096_bytes() {
    let content = [vec![b'a'; 10], vec![b'b'; FILE_LIMIT]].concat();
    assert_eq!(from_file(&content), "b".repeat(FILE_LIMIT));
    assert_eq!(from_file(b"short"), "short");
}

#[test]
fn a_character_that_the_limit_splits_is_not_left_in_halves() {
    let content = "é".repeat(FILE_LIMIT) + "x";
    let message = from_file(content.as_bytes());
    assert!(message.ends_with("éx") && message.len() <= FILE_LIMIT, "{} bytes", message.len());
}

#[test]
fn log_lines_lose_their_stamps_and_partial_ones_their_newline() {
    let log = b"2026-01-02T03:04:05.000000001Z stdout P first \n\
                2026-01-02T03:04:05.000000002Z stdout F half\n\
                2026-01-02T03:04:06Z stderr F:extra  indented\n\
                not a log line\n\
                2026-01-02T03:04:07Z stdout F\n";
    assert_eq!(from_log(log), "first half\n indented\n");
}

#[test]
fn a_log_gives_its_last_80_lines_and_its_last_2048_bytes() {
    let line = |n: usize| format!("2026-01-02T03:04:05Z stdout F {n}\n");
    let many: String = (0..100).map(line).collect();
    let message = from_log(many.as_bytes());
    assert!(message.starts_with("20\n") && message.ends_with("99\n"), "{message}");

    let wide = format!("2026-01-02T03:04:05Z stdout F {}end\n", "x".repeat(3 * LOG_LIMIT));
    let message = from_log(wide.as_bytes());
    assert_eq!(message.len(), LOG_LIMIT);
    assert!(message.ends_with("xend\n"));
}

#[test]
fn the_runtimes_sentence_comes_first() {
    let rows = [("oom", "bye", "oom: bye"), ("oom", "", "oom"), ("", "bye", "bye"), ("", "", "")];
    for (runtime, written, expected) in rows {
        assert_eq!(join(runtime, written), expected);
    }
}

#[test]
fn containers_share_12_kib_evenly() {
    let rows = [(0, 12_288), (1, 12_288), (3, 4096), (5, 2457)];
    for (containers, bytes) in rows {
        assert_eq!(share(containers), bytes);
    }
    assert_eq!(cut("aéb", 2), "a");
    assert_eq!(cut("aéb", 3), "aé");
    assert_eq!(cut("ab", 9), "ab");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_whatever_make_a_message_longer_than_its_limit(
        bytes in proptest::collection::vec(any::<u8>(), 0..FILE_LIMIT + 512),
    ) {
        prop_assert!(from_file(&bytes).len() <= FILE_LIMIT);
        prop_assert!(from_log(&bytes).len() <= LOG_LIMIT);
    }
}
