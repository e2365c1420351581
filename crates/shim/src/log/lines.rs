//! Splits what a container writes into lines of CRI's format: `TIME stdout F text`, with `P` for a part of a longer line.

use jiff::Timestamp;

use super::WrittenStream;

#[cfg(test)]
mod tests;

/// The longest text of one line in the log; longer ones are split.
const MOST_TEXT: usize = 16 << 10;

/// The line of one stream that is not complete yet.
#[derive(Debug)]
pub(crate) struct CriLineSplitter {
    stream: WrittenStream,
    begun: Vec<u8>,
}

impl CriLineSplitter {
    pub(crate) fn new(stream: WrittenStream) -> Self {
        Self { stream, begun: Vec::new() }
    }

    /// Adds what was read, and gives every line that is complete, or long enough to be written in part.
    pub(crate) fn add(&mut self, mut bytes: &[u8], now: Timestamp, mut line: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            let room = MOST_TEXT - self.begun.len();
            let newline = bytes.iter().take(room + 1).position(|byte| *byte == b'\n');
            let (text, rest, tag) = match newline {
                Some(at) => (&bytes[..at], &bytes[at + 1..], Some('F')),
                None if bytes.len() > room => (&bytes[..room], &bytes[room..], Some('P')),
                None => (bytes, &bytes[bytes.len()..], None),
            };
            self.begun.extend_from_slice(text);
            bytes = rest;
            if let Some(tag) = tag {
                self.finish(tag, now, &mut line);
            }
        }
    }

    /// Gives the last line, which has no end, as a part.
    pub(crate) fn end(&mut self, now: Timestamp, mut line: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            self.finish('P', now, &mut line);
        }
    }

    fn finish(&mut self, tag: char, now: Timestamp, line: &mut impl FnMut(&[u8])) {
        let mut whole = format!("{now:.9} {} {tag} ", self.stream.name()).into_bytes();
        whole.append(&mut self.begun);
        whole.push(b'\n');
        line(&whole);
        // A container that writes one long line seldom writes many.
        self.begun.shrink_to(0);
    }
}

/// Cuts output into lines, for fuzzing: they are the same wherever a read ended, none is longer than said, and together they are the output.
#[doc(hidden)]
pub fn fuzz_log_lines(output: &[u8], cut: usize) {
    let lines = |pieces: &[&[u8]]| {
        let mut splitter = CriLineSplitter::new(WrittenStream::Stdout);
        let mut all = Vec::new();
        for piece in pieces {
            splitter.add(piece, Timestamp::UNIX_EPOCH, |line| all.push(line.to_vec()));
        }
        splitter.end(Timestamp::UNIX_EPOCH, |line| all.push(line.to_vec()));
        all
    };
    let whole = lines(&[output]);
    let (first, second) = output.split_at(cut);
    assert_eq!(lines(&[first, second]), whole, "lines depend on where a read ended");
    let start = b"1970-01-01T00:00:00.000000000Z stdout ";
    let mut told = Vec::new();
    for line in &whole {
        let rest = line.strip_prefix(start.as_slice()).unwrap_or_default();
        let (tag, text) = rest.split_at_checked(2).unwrap_or_default();
        let text = text.strip_suffix(b"\n").unwrap_or_default();
        assert!(text.len() <= MOST_TEXT, "a line of {} bytes", text.len());
        told.extend_from_slice(text);
        match tag {
            b"F " => told.push(b'\n'),
            b"P " => {}
            other => panic!("the tag {other:?}"),
        }
    }
    assert_eq!(told, output, "the lines are not the output");
}
