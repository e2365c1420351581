//! The termination message of a container: from the file it wrote or, failing that, from the end of its log.
//!
//! The shell reads the files; here they become one bounded piece of valid text.

use crate::view::{ContainerLabel, Exit};

/// At most so many bytes, the last ones, are taken from the file.
pub const FILE_LIMIT: usize = 4096;
/// At most so many bytes, the last ones, are taken from the log.
pub const LOG_LIMIT: usize = 2048;
/// At most so many lines, the last ones, are taken from the log.
pub const LOG_LINES: usize = 80;
/// All containers of a pod share this many bytes.
pub const POD_LIMIT: usize = 12 * 1024;

/// What the container wrote into its termination message file.
pub fn from_file(content: &[u8]) -> String {
    last_text(content, FILE_LIMIT)
}

/// Whether the end of the log stands in for a message the container did not write.
pub fn needs_log(label: &ContainerLabel, exit: &Exit, written: &str) -> bool {
    label.termination_message_policy == "FallbackToLogsOnError"
        && written.is_empty()
        && exit.code != 0
        && exit.reason != "ContainerCannotRun"
}

/// The end of a CRI log, without stamps and tags.
pub fn from_log(log: &[u8]) -> String {
    let mut lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let tail = lines.split_off(lines.len().saturating_sub(LOG_LINES));
    let content: Vec<u8> = tail.into_iter().filter_map(log_content).flatten().copied().collect();
    last_text(&content, LOG_LIMIT)
}

/// The runtime's sentence and the container's own, where there are both.
pub fn join(runtime: &str, written: &str) -> String {
    match (runtime.is_empty(), written.is_empty()) {
        (false, false) => format!("{runtime}: {written}"),
        _ => format!("{runtime}{written}"),
    }
}

/// How many bytes each of a pod's containers may use.
pub fn share(containers: usize) -> usize {
    POD_LIMIT / containers.max(1)
}

/// The message cut at its end to `limit` bytes, never inside a character.
pub fn cut(message: &str, limit: usize) -> &str {
    &message[..message.floor_char_boundary(limit)]
}

/// The content of one line `<time> <stream> <tags> <content>`; the newline of a partial line is not content.
fn log_content(line: &[u8]) -> Option<&[u8]> {
    let mut fields = line.splitn(4, |byte| *byte == b' ');
    let (_time, stream, tags) = (fields.next()?, fields.next()?, fields.next()?);
    if !matches!(stream, b"stdout" | b"stderr") {
        return None;
    }
    let content = fields.next().unwrap_or_default();
    let partial = tags.split(|byte| *byte == b':').next() == Some(b"P".as_slice());
    Some(if partial { content.strip_suffix(b"\n").unwrap_or(content) } else { content })
}

/// At most the last `limit` bytes as text. Replacing invalid bytes makes text longer, so it is cut after that.
fn last_text(bytes: &[u8], limit: usize) -> String {
    let tail = &bytes[bytes.len().saturating_sub(limit)..];
    let text = String::from_utf8_lossy(tail);
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
    text[start..].to_owned()
}

#[cfg(test)]
mod tests;
