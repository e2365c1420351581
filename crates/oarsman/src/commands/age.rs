//! Durations as kubectl prints them: the longer, the less exact.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// From one time to another; zero when the clock went backwards in between.
pub(super) fn between(earlier: Timestamp, later: Timestamp) -> String {
    human(later.duration_since(earlier).as_secs())
}

/// Seconds as text.
pub(super) fn human(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / MINUTE, seconds / HOUR, seconds / DAY);
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => with_rest(minutes, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with_rest(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with_rest(days, "d", hours % 24, "h"),
        _ if seconds < 2 * YEAR => format!("{days}d"),
        _ if seconds < 8 * YEAR => with_rest(seconds / YEAR, "y", days % 365, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn with_rest(whole: i64, unit: &str, rest: i64, of_rest: &str) -> String {
    if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{of_rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_written_as_kubectl_does() {
        let rows = [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (10 * MINUTE, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 20 * MINUTE, "3h20m"),
            (9 * HOUR + MINUTE, "9h"),
            (2 * DAY + HOUR, "2d1h"),
            (10 * DAY + HOUR, "10d"),
            (3 * YEAR + DAY, "3y1d"),
            (9 * YEAR, "9y"),
        ];
        for (seconds, want) in rows {
            assert_eq!(human(seconds), want);
        }
    }
}
