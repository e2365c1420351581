//! The health endpoints: which checks there are, when each of them fails, and the text of the answer.

use std::time::Duration;

use crate::time::Mono;

/// The sync loop may be silent for this long, whatever the frequency of syncs.
const SHORTEST_SILENCE: Duration = Duration::from_secs(5 * 60);

/// The agent's log may take no line for this long.
const LONGEST_LOG_SILENCE: Duration = Duration::from_secs(2 * 60);

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// Its name, which is also its path below `/healthz`.
    pub name: &'static str,
    /// Its result, with the reason of a failure.
    pub result: Result<(), String>,
}

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthQuery {
    /// Whether each check is listed though all pass.
    pub verbose: bool,
    /// Names of checks that do not count.
    pub exclude: Vec<String>,
}

/// The answer of a health endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthAnswer {
    /// Whether all checks that count passed: the status is 200, else 500.
    pub is_healthy: bool,
    /// The body of the answer.
    pub text: String,
}

/// Whether the sync loop has iterated recently. Before its first turn the agent starts, which is no failure.
pub fn sync_loop(last: Option<Mono>, now: Mono, sync_frequency: Duration) -> Result<(), String> {
    let longest = (sync_frequency * 2).max(SHORTEST_SILENCE);
    match last {
        Some(last) if now.since(last) > longest => {
            Err("sync Loop took longer than expected".to_owned())
        }
        Some(_) | None => Ok(()),
    }
}

/// How the agent's own log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogProgress {
    /// Since when a line waits to be written, without any other being written.
    pub waiting_since: Option<Mono>,
    /// The first and the last line in a row that could not be written.
    pub failures: Option<(Mono, Mono)>,
}

/// Whether the agent's log is written. That there is nothing to write is no failure, and neither is a single line that is lost.
pub fn log(progress: LogProgress, now: Mono) -> Result<(), String> {
    let is_long = |since: Mono, until: Mono| until.since(since) > LONGEST_LOG_SILENCE;
    let seconds = LONGEST_LOG_SILENCE.as_secs();
    if progress.waiting_since.is_some_and(|since| is_long(since, now)) {
        return Err(format!("logging blocked: the log took no line for more than {seconds} s"));
    }
    if progress.failures.is_some_and(|(first, last)| is_long(first, last)) {
        return Err(format!("logging failed: no line could be written for more than {seconds} s"));
    }
    Ok(())
}

/// The answer of `/healthz`. Reasons are withheld, since no permission to read them is asked for.
pub fn all(checks: &[HealthCheck], query: &HealthQuery) -> HealthAnswer {
    let is_excluded = |check: &HealthCheck| query.exclude.iter().any(|name| name == check.name);
    let counted = || checks.iter().filter(|check| !is_excluded(check));
    let is_healthy = counted().all(|check| check.result.is_ok());
    if is_healthy && !query.verbose {
        return HealthAnswer { is_healthy, text: "ok".to_owned() };
    }
    let line = |check: &HealthCheck| match &check.result {
        _ if is_excluded(check) => format!("[+]{} excluded: ok\n", check.name),
        Ok(()) => format!("[+]{} ok\n", check.name),
        Err(_) => format!("[-]{} failed: reason withheld\n", check.name),
    };
    let lines: String = checks.iter().map(line).collect();
    let verdict = if is_healthy { "passed" } else { "failed" };
    HealthAnswer { is_healthy, text: format!("{lines}healthz check {verdict}\n") }
}

/// The answer of the path of one check.
pub fn one(check: &HealthCheck) -> HealthAnswer {
    match &check.result {
        Ok(()) => HealthAnswer { is_healthy: true, text: "ok".to_owned() },
        Err(why) => {
            HealthAnswer { is_healthy: false, text: format!("internal server error: {why}\n") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sync_loop_fails_after_two_periods_and_five_minutes_at_least() {
        let at = |seconds: u64| Mono(Duration::from_secs(seconds));
        let rows = [
            (None, 10_000, 60, true),
            (Some(0), 300, 60, true),
            (Some(0), 301, 60, false),
            (Some(100), 400, 60, true),
            (Some(0), 600, 300, true),
            (Some(0), 601, 300, false),
        ];
        for (last, now, frequency, expected) in rows {
            let result = sync_loop(last.map(at), at(now), Duration::from_secs(frequency));
            assert_eq!(result.is_ok(), expected, "{last:?} {now} {frequency}");
        }
    }

    #[test]
    fn the_log_fails_when_lines_wait_or_are_lost_for_more_than_two_minutes() {
        let at = |seconds: u64| Mono(Duration::from_secs(seconds));
        let rows = [
            (None, None, 10_000, None),
            (Some(100), None, 220, None),
            (
                Some(100),
                None,
                221,
                Some("logging blocked: the log took no line for more than 120 s"),
            ),
            (None, Some((100, 100)), 10_000, None),
            (None, Some((100, 220)), 10_000, None),
            (
                None,
                Some((100, 221)),
                221,
                Some("logging failed: no line could be written for more than 120 s"),
            ),
        ];
        for (waiting, failures, now, expected) in rows {
            let progress = LogProgress {
                waiting_since: waiting.map(at),
                failures: failures.map(|(first, last)| (at(first), at(last))),
            };
            let expected = expected.map_or(Ok(()), |why| Err(why.to_owned()));
            assert_eq!(log(progress, at(now)), expected, "{waiting:?} {failures:?} {now}");
        }
    }

    fn checks(sync_loop: Result<(), String>) -> [HealthCheck; 2] {
        [
            HealthCheck { name: "ping", result: Ok(()) },
            HealthCheck { name: "syncloop", result: sync_loop },
        ]
    }

    #[test]
    fn the_answer_lists_the_checks_when_one_fails_or_all_are_asked_for() {
        let failed = || Err("sync Loop took longer than expected".to_owned());
        let verbose = HealthQuery { verbose: true, ..HealthQuery::default() };
        let without =
            HealthQuery { exclude: vec!["syncloop".to_owned()], ..HealthQuery::default() };
        let both = HealthQuery { verbose: true, ..without.clone() };
        let rows = [
            (Ok(()), HealthQuery::default(), true, "ok"),
            (Ok(()), verbose, true, "[+]ping ok\n[+]syncloop ok\nhealthz check passed\n"),
            (
                failed(),
                HealthQuery::default(),
                false,
                "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n",
            ),
            (failed(), without, true, "ok"),
            (failed(), both, true, "[+]ping ok\n[+]syncloop excluded: ok\nhealthz check passed\n"),
        ];
        for (sync_loop, query, is_healthy, text) in rows {
            let expected = HealthAnswer { is_healthy, text: text.to_owned() };
            assert_eq!(all(&checks(sync_loop), &query), expected, "{query:?}");
        }
    }

    #[test]
    fn one_check_tells_why_it_fails() {
        let [ping, failed] = checks(Err("so".to_owned()));
        assert_eq!(one(&ping), HealthAnswer { is_healthy: true, text: "ok".to_owned() });
        assert_eq!(one(&failed).text, "internal server error: so\n");
        assert!(!one(&failed).is_healthy);
    }
}
