//! The texts of `/flagz` and `/statusz`, which people read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.";

/// The only media type of both.
pub const MEDIA_TYPE: &str = "text/plain; charset=utf-8";

/// What `/statusz` says of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusFacts {
    /// When it was started.
    pub started: Timestamp,
    /// The compiler that it was built with.
    pub rust_version: String,
    /// Its own version.
    pub binary_version: String,
    /// The version of Kubernetes that it behaves like.
    pub emulation_version: String,
}

/// Whether a client that sends this `Accept` takes plain text; one that sends none does.
pub fn accepts_text(accept: &str) -> bool {
    let is_text = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_meant = matches!(kind, "text/plain" | "text/*" | "*/*" | "");
        let is_plain = |part: &str| {
            let part = part.to_ascii_lowercase();
            part == "charset=utf-8" || part.starts_with("q=")
        };
        is_meant && parts.all(is_plain)
    };
    accept.split(',').any(|range| is_text(range.trim()))
}

/// The text of `/flagz`: each flag with its value.
pub fn flags(component: &str, values: &BTreeMap<String, String>) -> String {
    let mut text = format!("\n{component} flags\n{WARNING}\n\n");
    for (name, value) in values {
        // Writing to a text cannot fail.
        writeln!(text, "{name}={value}").ok();
    }
    text
}

/// The text of `/statusz`; of the paths the first parts are named.
pub fn status(component: &str, facts: &StatusFacts, up: Duration, paths: &[&str]) -> String {
    let started = facts.started.strftime("%a %b %e %H:%M:%S UTC %Y");
    let seconds = up.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let first = |path: &&str| format!("/{}", path.split('/').nth(1).unwrap_or_default());
    let roots: BTreeSet<String> = paths.iter().map(first).collect();
    let roots = roots.into_iter().collect::<Vec<_>>().join(" ");
    format!(
        "\n{component} statusz\n{WARNING}\n\nStarted: {started}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\n\
         Rust version: {}\nBinary version: {}\nEmulation version: {}\nPaths: {roots}\n",
        facts.rust_version, facts.binary_version, facts.emulation_version
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_listed_by_name() {
        let values = [("v", "2"), ("address", "0.0.0.0"), ("config", "")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let text = flags("kubelet", &values);
        assert!(text.starts_with("\nkubelet flags\nWarning: This endpoint is not meant"), "{text}");
        assert!(text.ends_with("only.\n\naddress=0.0.0.0\nconfig=\nv=2\n"), "{text}");
    }

    #[test]
    fn the_status_has_the_age_the_versions_and_the_paths() {
        let facts = StatusFacts {
            started: "2026-01-05T06:07:08Z".parse().unwrap(),
            rust_version: "1.95".to_owned(),
            binary_version: "0.1.0".to_owned(),
            emulation_version: "1.36".to_owned(),
        };
        let up = Duration::from_secs(2 * 3600 + 3 * 60 + 4);
        let text = status("kubelet", &facts, up, &["/pods", "/debug/pprof/", "/debug/flags/v"]);
        let expected = "\n\nStarted: Mon Jan  5 06:07:08 UTC 2026\nUp: 2 hr 03 min 04 sec\nRust version: 1.95\n\
                        Binary version: 0.1.0\nEmulation version: 1.36\nPaths: /debug /pods\n";
        assert!(text.starts_with("\nkubelet statusz\nWarning: "), "{text}");
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn clients_that_take_no_text_are_told_from_others() {
        let rows = [
            ("", true),
            ("*/*", true),
            ("text/plain", true),
            ("text/plain;charset=UTF-8", true),
            ("application/json, text/*;q=0.5", true),
            ("application/json", false),
            ("text/html", false),
            ("text/plain;version=2", false),
        ];
        for (accept, expected) in rows {
            assert_eq!(accepts_text(accept), expected, "{accept}");
        }
    }
}
