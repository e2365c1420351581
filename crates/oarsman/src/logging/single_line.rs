//! One line for each event: what a container, an image or a client put into a message begins no line of its own.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// Makes writers that let each write be one line.
pub(super) struct SingleLine<M> {
    pub(super) writer: M,
    /// Whether we colour the lines ourselves.
    pub(super) colours: bool,
}

/// Writes one event.
pub(super) struct SingleLineWriter<W>(W, bool);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for SingleLine<M> {
    type Writer = SingleLineWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        SingleLineWriter(self.writer.make_writer(), self.colours)
    }
}

impl<W: Write> Write for SingleLineWriter<W> {
    /// An event comes as one write, with one newline at its end.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = single_line(&String::from_utf8_lossy(event), self.1);
        self.0.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The text with all that would begin a line, steer a terminal or turn the direction of writing, written out. Where lines are coloured
/// colours stay, and end with the line: most are our own.
fn single_line(event: &str, colours: bool) -> String {
    let (text, end) = event.strip_suffix('\n').map_or((event, ""), |text| (text, "\n"));
    let mut line = String::with_capacity(event.len());
    for (place, letter) in text.char_indices() {
        let is_ours = letter == '\t' || (colours && is_colour(&text[place..]));
        let steers = letter.is_control() && !is_ours;
        if steers || is_line_break(letter) || is_bidi_control(letter) {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    let reset = if colours { "\u{1b}[0m" } else { "" };
    line + reset + end
}

fn is_line_break(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}')
}

fn is_bidi_control(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a text begins with a sequence that only sets a colour.
fn is_colour(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return false };
    rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';')
        .starts_with('m')
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct LineBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LineBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_container_says_makes_no_line_of_its_own() {
        let buffer = LineBuffer::default();
        let writer = buffer.clone();
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(SingleLine { writer: move || writer.clone(), colours: false });
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            let said = "exit\n2026-01-01T00:00:00Z  INFO forged\r\u{1b}[2J\u{1b}[8m\u{9b}31m\u{2028}\u{202e}é\tx";
            tracing::warn!(error = %said, "container failed: {said}");
            tracing::info!("next");
        });
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.contains("\\n2026") && text.contains("é\tx") && text.ends_with("next\n"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let is_control = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
        assert!(!text.contains(is_control) && !text.contains('\u{2028}'), "{text:?}");
    }

    #[test]
    fn colours_end_with_their_line_where_there_are_any() {
        let event = "\u{1b}[33mWARN\u{1b}[0m \u{1b}[8mhidden \u{2066}x\n";
        let want = "\u{1b}[33mWARN\u{1b}[0m \u{1b}[8mhidden \\u{2066}x\u{1b}[0m\n";
        assert_eq!(single_line(event, true), want);
        assert!(!single_line(event, false).contains('\u{1b}'));
    }
}
