//! Prints log lines without the CRI fields, to stdout and stderr or to one writer, with or without times.

use std::io::{self, Write};

use jiff::Timestamp;

use super::line::{CriLogLine, LogStream};

/// How lines are printed.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions {
    /// What was written earlier is left out.
    pub since: Option<Timestamp>,
    /// Stands before every line.
    pub prefix: Option<String>,
    /// Whether the time stands before every line.
    pub timestamps: bool,
}

/// Prints lines, and joins those that came in parts.
#[derive(Debug)]
pub struct LogPrinter {
    style: PrintOptions,
    /// Whether the last line on stdout, and on stderr, is not at its end.
    unfinished: [bool; 2],
}

impl LogPrinter {
    /// Shows lines like this.
    pub fn new(style: PrintOptions) -> Self {
        Self { style, unfinished: [false; 2] }
    }

    /// Prints one line of a log file where it was written. What is no such line is left out, as by the Go kubelet: it may be the
    /// content of any other file.
    ///
    /// # Errors
    /// Those of the writers.
    pub fn print(
        &mut self,
        bytes: &[u8],
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> io::Result<()> {
        let is_err = CriLogLine::parse(bytes).is_some_and(|line| line.stream == LogStream::Err);
        self.print_joined(bytes, if is_err { err } else { out })
    }

    /// Prints one line of a log file, wherever it was written.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn print_joined(&mut self, bytes: &[u8], to: &mut dyn Write) -> io::Result<()> {
        let Some(line) = CriLogLine::parse(bytes) else { return Ok(()) };
        if self.style.since.is_some_and(|since| line.written_at < since) {
            return Ok(());
        }
        let unfinished = match line.stream {
            LogStream::Out => &mut self.unfinished[0],
            LogStream::Err => &mut self.unfinished[1],
        };
        if !std::mem::replace(unfinished, line.partial) {
            to.write_all(self.style.prefix.as_deref().unwrap_or_default().as_bytes())?;
            if self.style.timestamps {
                write!(to, "{} ", line.time)?;
            }
        }
        to.write_all(line.content)?;
        to.write_all(if line.partial { b"" } else { b"\n" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: [&str; 7] = [
        "2026-01-01T00:00:01Z stdout F one",
        "2026-01-01T00:00:02Z stderr F bad",
        "2026-01-01T00:00:03Z stdout P lo",
        "2026-01-01T00:00:04Z stderr F worse",
        "2026-01-01T00:00:05Z stdout P ng",
        "2026-01-01T00:00:06Z stdout F  line",
        "not a line",
    ];

    fn printed(style: PrintOptions) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut printer = LogPrinter::new(style);
        for line in LOG {
            printer.print(line.as_bytes(), &mut out, &mut err).unwrap();
        }
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    #[test]
    fn parts_are_joined_and_each_stream_goes_where_it_was_written() {
        let want = ("one\nlong line\n".to_owned(), "bad\nworse\n".to_owned());
        assert_eq!(printed(PrintOptions::default()), want);
    }

    #[test]
    fn the_time_and_the_prefix_stand_before_whole_lines() {
        let style = PrintOptions { timestamps: true, prefix: Some("[a] ".to_owned()), since: None };
        let (out, _) = printed(style);
        let want = "[a] 2026-01-01T00:00:01Z one\n[a] 2026-01-01T00:00:03Z long line\n";
        assert_eq!(out, want);
    }

    #[test]
    fn lines_before_the_given_time_are_left_out() {
        let since = Some("2026-01-01T00:00:04Z".parse().unwrap());
        let (out, err) = printed(PrintOptions { since, ..PrintOptions::default() });
        assert_eq!((out.as_str(), err.as_str()), ("ng line\n", "worse\n"));
    }
}
