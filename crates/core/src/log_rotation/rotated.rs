//! Names of rotated logs, and what is done with them.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// What the name of a compressed log ends with.
pub const COMPRESSED_SUFFIX: &str = ".gz";
/// What the name of a log ends with that is being compressed.
pub const UNFINISHED_SUFFIX: &str = ".tmp";

/// The time of a rotation, as names have it.
const TIME_FORMAT: &str = "%Y%m%d-%H%M%S";

/// The steps of a rotation besides the compression of earlier ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationPlan {
    /// Files to remove before it: remainders, and the oldest beyond what is kept.
    pub remove: Vec<String>,
    /// The new name of the log.
    pub rotated: String,
}

/// A file that a rotation left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RotatedLog<'n> {
    name: &'n str,
    rotated_at: Timestamp,
    form: RotatedForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RotatedForm {
    Plain,
    Compressed,
    /// Its compression was cut off.
    Unfinished,
}

/// The steps by which a log is rotated, of which there are files of these names. Files that are named otherwise are not ours.
pub fn plan_rotation(
    log: &str,
    names: &[String],
    max_files: usize,
    now: Timestamp,
) -> RotationPlan {
    let all = rotated_logs(log, names);
    let (kept, remainders): (Vec<_>, Vec<_>) =
        all.iter().copied().partition(|file| !is_remainder(file, &all));
    // The one that is rotated now, and the one that is written to, are files of it, too.
    let surplus = kept.len().saturating_sub(max_files.saturating_sub(2));
    let remove = remainders.iter().chain(&kept[..surplus]).map(|file| file.name.to_owned());
    RotationPlan { remove: remove.collect(), rotated: rotated_name(log, &all, now) }
}

/// Rotated logs that are to be compressed: all but the newest, which the runtime may have open still.
pub fn logs_to_compress(log: &str, names: &[String]) -> Vec<String> {
    let all = rotated_logs(log, names);
    let newest = all.last().map(|file| file.rotated_at);
    let plain = all.iter().filter(|file| file.form == RotatedForm::Plain);
    let older = plain.filter(|file| Some(file.rotated_at) != newest && !is_remainder(file, &all));
    older.map(|file| file.name.to_owned()).collect()
}

/// One file for each rotation of a log, oldest first: the plain one where both are there.
pub fn rotated_in_order(log: &str, names: &[String]) -> Vec<String> {
    let mut all = rotated_logs(log, names);
    all.retain(|file| file.form != RotatedForm::Unfinished);
    // The name of the plain one is the shorter one, and comes first.
    all.dedup_by_key(|file| file.rotated_at);
    all.into_iter().map(|file| file.name.to_owned()).collect()
}

/// Names never go back, whatever the clock does: their order is the order of the lines.
fn rotated_name(log: &str, all: &[RotatedLog<'_>], now: Timestamp) -> String {
    let after = |file: &RotatedLog<'_>| {
        file.rotated_at.checked_add(Duration::from_secs(1)).unwrap_or(Timestamp::MAX)
    };
    let at = all.last().map(after).map_or(now, |earliest| earliest.max(now));
    format!("{log}.{}", at.strftime(TIME_FORMAT))
}

/// Unfinished, or compressed already.
fn is_remainder(file: &RotatedLog<'_>, all: &[RotatedLog<'_>]) -> bool {
    let is_its_copy = |other: &RotatedLog<'_>| {
        other.form == RotatedForm::Compressed && other.rotated_at == file.rotated_at
    };
    match file.form {
        RotatedForm::Unfinished => true,
        RotatedForm::Compressed => false,
        RotatedForm::Plain => all.iter().any(is_its_copy),
    }
}

/// The rotated logs among these names, oldest first.
fn rotated_logs<'n>(log: &str, names: &'n [String]) -> Vec<RotatedLog<'n>> {
    let mut found: Vec<_> = names.iter().filter_map(|name| parse(log, name)).collect();
    found.sort_by_key(|file| (file.rotated_at, file.name));
    found
}

fn parse<'n>(log: &str, name: &'n str) -> Option<RotatedLog<'n>> {
    let suffix = name.strip_prefix(log)?.strip_prefix('.')?;
    let (time, form) = if let Some(time) = suffix.strip_suffix(COMPRESSED_SUFFIX) {
        (time, RotatedForm::Compressed)
    } else if let Some(time) = suffix.strip_suffix(UNFINISHED_SUFFIX) {
        (time, RotatedForm::Unfinished)
    } else {
        (suffix, RotatedForm::Plain)
    };
    let rotated_at = DateTime::strptime(TIME_FORMAT, time).ok()?;
    let rotated_at = rotated_at.to_zoned(TimeZone::UTC).ok()?.timestamp();
    let is_exact = rotated_at.strftime(TIME_FORMAT).to_string() == time;
    is_exact.then_some(RotatedLog { name, rotated_at, form })
}
