//! What a container leaves as its termination message: the file, or the end of its log.

use oarsman_core::termination_message::{
    FILE_LIMIT, LOG_LIMIT, cut, from_file, from_log, join, share,
};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "termination-messages", max_len: 8192, run, seeds };

fn run(bytes: &[u8]) {
    let (file, log) = (from_file(bytes), from_log(bytes));
    assert!(file.len() <= FILE_LIMIT, "{} bytes of a file", file.len());
    assert!(log.len() <= LOG_LIMIT, "{} bytes of a log", log.len());
    if let Ok(text) = str::from_utf8(bytes) {
        assert!(text.ends_with(&file), "text is changed");
    }
    let limit = share(usize::from(bytes.first().copied().unwrap_or_default()));
    let joined = join(&file, &log);
    let message = cut(&joined, limit);
    assert!(message.len() <= limit && joined.starts_with(message), "cut at {limit}");
}

fn seeds() -> Vec<Vec<u8>> {
    let long = "é".repeat(3000);
    let mut seeds = texts(&[
        "it failed\n",
        "2026-01-01T00:00:01Z stdout F one\n2026-01-01T00:00:02Z stderr P half\n2026-01-01T00:00:03Z stderr F:tag rest\nnot a line\n",
        &long,
    ]);
    seeds.push(vec![0xff; 5000]);
    seeds
}
