//! Parses the lines of a container's log: `2026-01-01T00:00:00.000000000Z stdout F what was written`.

use jiff::Timestamp;

/// What is kept of one line. Runtimes split lines at 16 KiB unless they are told otherwise; what is longer is cut, so that a line
/// without end takes no memory without end.
pub(super) const MAX_LINE_BYTES: u64 = 256 * 1024;

/// Where a container wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogStream {
    Out,
    Err,
}

/// A line, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CriLogLine<'a> {
    pub(super) time: &'a str,
    pub(super) written_at: Timestamp,
    pub(super) stream: LogStream,
    /// Whether the line goes on with the next of the same stream.
    pub(super) partial: bool,
    pub(super) content: &'a [u8],
}

impl<'a> CriLogLine<'a> {
    /// Parses a line without its newline; none when it is not in the CRI format.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut parts = bytes.splitn(4, |byte| *byte == b' ');
        let time = str::from_utf8(parts.next()?).ok()?;
        let written_at = time.parse().ok()?;
        let stream = match parts.next()? {
            b"stdout" => LogStream::Out,
            b"stderr" => LogStream::Err,
            _ => return None,
        };
        // More tags may follow the first.
        let partial = match parts.next()?.split(|byte| *byte == b':').next()? {
            b"P" => true,
            b"F" => false,
            _ => return None,
        };
        let content = parts.next().unwrap_or_default();
        Some(Self { time, written_at, stream, partial, content })
    }
}

/// Joins the bytes that were read to whole lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    rest: Vec<u8>,
}

impl LineSplitter {
    /// Calls back for every line that is whole by now.
    ///
    /// # Errors
    /// Those of the callback.
    pub fn feed<E>(
        &mut self,
        bytes: &[u8],
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) if self.rest.is_empty() => each(end)?,
                Some(end) => {
                    self.keep(end);
                    each(&std::mem::take(&mut self.rest))?;
                }
                None => self.keep(piece),
            }
        }
        Ok(())
    }

    /// Keeps as much of a line as there is room for.
    fn keep(&mut self, piece: &[u8]) {
        let most = usize::try_from(MAX_LINE_BYTES).unwrap_or(usize::MAX);
        let room = most.saturating_sub(self.rest.len());
        self.rest.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Gives up waiting for the end of the last line.
    ///
    /// # Errors
    /// Those of the callback.
    pub fn end<E>(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() { Ok(()) } else { each(&rest) }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn lines_are_read_as_runtimes_write_them() {
        let line = |stream, partial, content: &'static str| {
            Some(CriLogLine {
                time: "2026-01-01T00:00:00.5Z",
                written_at: "2026-01-01T00:00:00.5Z".parse().unwrap(),
                stream,
                partial,
                content: content.as_bytes(),
            })
        };
        let rows = [
            ("stdout F hello  world ", line(LogStream::Out, false, "hello  world ")),
            ("stderr P half a", line(LogStream::Err, true, "half a")),
            ("stdout F:tag:other x", line(LogStream::Out, false, "x")),
            ("stdout F ", line(LogStream::Out, false, "")),
            ("stdout F", line(LogStream::Out, false, "")),
            ("stdin F x", None),
            ("stdout X x", None),
            ("stdout", None),
            ("", None),
        ];
        for (text, want) in rows {
            let text = format!("2026-01-01T00:00:00.5Z {text}");
            assert_eq!(CriLogLine::parse(text.as_bytes()), want, "{text}");
        }
        for text in [&b"\xff stdout F x"[..], b"root stdout F x", b" stdout F x"] {
            assert_eq!(CriLogLine::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_cut_and_what_follows_it_is_read() {
        let (mut lines, mut seen) = (LineSplitter::default(), Vec::new());
        let mut each = |line: &[u8]| {
            seen.push(line.len());
            Ok::<_, Infallible>(())
        };
        let mut held = 0;
        for _ in 0..64 {
            lines.feed(&[0; 64 * 1024], &mut each).unwrap();
            held = held.max(lines.rest.capacity());
        }
        lines.feed(b"\nnext\n", &mut each).unwrap();
        assert!(held <= 512 * 1024, "{held} bytes are held for one line");
        assert_eq!(seen, [256 * 1024, 4]);
    }

    #[test]
    fn lines_are_joined_wherever_a_read_ended() {
        let text = b"one\n\ntwo\nthree";
        for cut in 0..=text.len() {
            let (mut lines, mut seen) = (LineSplitter::default(), Vec::new());
            let mut each = |line: &[u8]| {
                seen.push(line.to_vec());
                Ok::<_, Infallible>(())
            };
            lines.feed(&text[..cut], &mut each).unwrap();
            lines.feed(&text[cut..], &mut each).unwrap();
            lines.end(&mut each).unwrap();
            lines.end(&mut each).unwrap();
            assert_eq!(seen, [&b"one"[..], b"", b"two", b"three"], "{cut}");
        }
    }
}
