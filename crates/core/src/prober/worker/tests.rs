//! Schedules and thresholds, row by row.

use super::*;
use crate::fixture::{at, now};

const SECOND: Duration = Duration::from_secs(1);

fn schedule() -> ProbeSchedule {
    ProbeSchedule {
        initial_delay: Duration::ZERO,
        period: 10 * SECOND,
        timeout: SECOND,
        success_threshold: 1,
        failure_threshold: 3,
    }
}

/// Begins 100 seconds into the test, beside a container started then.
fn start() -> ProbeStart {
    ProbeStart {
        now: now(100),
        container_started: at(100),
        agent_began: at(0),
        jitter: Jitter::from_bits(u32::MAX),
    }
}

fn worker(kind: ProbeKind, schedule: ProbeSchedule) -> ProbeWorker {
    ProbeWorker::new(kind, schedule, kind.initial_result(), &start())
}

fn mono(seconds: u64) -> Mono {
    Mono(Duration::from_secs(seconds))
}

/// `+` is a success, `-` a failure, `w` a warning, `e` an error.
fn outcome(letter: char) -> ProbeOutcome {
    match letter {
        '+' => ProbeOutcome::success(""),
        'w' => ProbeOutcome::warning(""),
        '-' => ProbeOutcome::failure(""),
        _ => ProbeOutcome::error(""),
    }
}

/// The results that these answers make: `S` and `F` for new ones, `.` for none.
fn results(worker: &mut ProbeWorker, answers: &str) -> String {
    let each = answers.chars().map(|letter| match worker.record(&outcome(letter), mono(0)) {
        None => '.',
        Some(ProbeResult::Success) => 'S',
        Some(ProbeResult::Failure) => 'F',
        Some(ProbeResult::Unknown) => 'U',
    });
    each.collect()
}

#[test]
fn the_first_probe_is_at_once_or_when_the_initial_delay_since_the_start_is_over() {
    let rows = [
        (0, 100, 100),
        (0, 40, 100),
        (30, 100, 130),
        (30, 90, 120),
        (30, 70, 100),
        (30, 60, 100),
        // The wall clock went back: no more than the delay is waited for.
        (30, 900, 130),
    ];
    for (delay, started, expected) in rows {
        let schedule = ProbeSchedule { initial_delay: delay * SECOND, ..schedule() };
        let start = ProbeStart { container_started: at(started), ..start() };
        let worker = ProbeWorker::new(ProbeKind::Liveness, schedule, ProbeResult::Success, &start);
        assert_eq!(worker.next_probe(), Some(mono(expected)), "{delay} {started}");
    }
}

#[test]
fn after_a_restart_of_the_agent_first_probes_are_spread_over_half_a_second_at_most() {
    let rows = [
        // A container of this agent is asked at once.
        (100, 100, 10_000, u32::MAX, 0),
        (90, 100, 10_000, 0, 0),
        (90, 100, 10_000, 1 << 31, 250),
        (90, 100, 10_000, u32::MAX, 500),
        (90, 100, 200, u32::MAX, 200),
    ];
    for (container, agent, period, bits, expected) in rows {
        let schedule = ProbeSchedule { period: Duration::from_millis(period), ..schedule() };
        let start = ProbeStart {
            container_started: at(container),
            agent_began: at(agent),
            jitter: Jitter::from_bits(bits),
            ..start()
        };
        let worker = ProbeWorker::new(ProbeKind::Readiness, schedule, ProbeResult::Success, &start);
        let wait = worker.next_probe().unwrap().since(mono(100));
        assert_eq!(wait.as_millis(), expected, "{container} {agent} {bits}");
    }
}

#[test]
fn probes_follow_each_other_by_the_period_from_beginning_to_beginning() {
    let mut worker = worker(ProbeKind::Readiness, schedule());
    for letter in ['+', '-', 'e', 'w'] {
        worker.record(&outcome(letter), mono(200));
        assert_eq!(worker.next_probe(), Some(mono(210)), "{letter}");
    }
}

#[test]
fn probes_after_the_first_fall_on_common_points_in_time_and_do_not_drift() {
    let rows = [
        // Period, begin, and the next probe, in milliseconds.
        (1_000, 200_000, 201_000),
        (1_000, 200_007, 201_000),
        (1_000, 200_049, 201_000),
        (1_000, 200_050, 201_050),
        (10_000, 200_049, 210_000),
        (200, 200_009, 200_200),
        (200, 200_011, 200_210),
    ];
    for (period, began, expected) in rows {
        let schedule = ProbeSchedule { period: Duration::from_millis(period), ..schedule() };
        let mut worker = worker(ProbeKind::Readiness, schedule);
        worker.record(&outcome('+'), Mono(Duration::from_millis(began)));
        let next = worker.next_probe().unwrap();
        assert_eq!(next.0.as_millis(), expected, "{period} {began}");
    }
}

#[test]
fn as_many_equal_answers_in_a_row_as_the_threshold_says_make_a_result() {
    use ProbeKind::{Liveness, Readiness, Startup};
    let rows = [
        (Readiness, 1, 3, "+", "S"),
        (Readiness, 1, 3, "w", "S"),
        (Readiness, 1, 3, "++", "S."),
        (Readiness, 1, 3, "---", "..."),
        (Readiness, 1, 3, "+---+", "S..FS"),
        (Readiness, 1, 3, "+--+--+---", "S........F"),
        (Readiness, 2, 1, "+-++-+", "...SF."),
        (Liveness, 1, 3, "+--+--", "......"),
        (Liveness, 1, 3, "---", "..F"),
        (Liveness, 1, 1, "-", "F"),
        (Startup, 1, 3, "--+", "..S"),
        (Startup, 1, 3, "---", "..F"),
        (Startup, 1, 1, "-", "F"),
    ];
    for (kind, success_threshold, failure_threshold, answers, expected) in rows {
        let schedule = ProbeSchedule { success_threshold, failure_threshold, ..schedule() };
        let found = results(&mut worker(kind, schedule), answers);
        assert_eq!(found, expected, "{kind} {answers}");
    }
}

#[test]
fn an_error_is_not_counted_and_ends_no_run() {
    let rows = [("eeeeee", "......"), ("--e-", "...F"), ("e-e-e-", ".....F"), ("-e+e", "....")];
    for (answers, expected) in rows {
        let found = results(&mut worker(ProbeKind::Liveness, schedule()), answers);
        assert_eq!(found, expected, "{answers}");
    }
}

#[test]
fn a_failed_liveness_and_any_result_of_startup_put_the_probe_on_hold() {
    use ProbeKind::{Liveness, Readiness, Startup};
    let rows = [
        (Liveness, "---", true),
        (Liveness, "--", false),
        (Liveness, "+", false),
        (Startup, "+", true),
        (Startup, "---", true),
        (Startup, "--e", false),
        (Readiness, "---", false),
        (Readiness, "+", false),
    ];
    for (kind, answers, on_hold) in rows {
        let mut worker = worker(kind, schedule());
        results(&mut worker, answers);
        assert_eq!(worker.next_probe().is_none(), on_hold, "{kind} {answers}");
    }
}

#[test]
fn a_result_of_an_earlier_agent_counts_until_the_threshold_is_reached_anew() {
    let kept = |result| ProbeWorker::new(ProbeKind::Readiness, schedule(), result, &start());
    assert_eq!(results(&mut kept(ProbeResult::Success), "--+---"), ".....F");
    assert_eq!(results(&mut kept(ProbeResult::Failure), "-+"), ".S");
}
