//! The display of `oarsman run`: on a terminal a few lines at the bottom that are redrawn, elsewhere a line for every change.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};

use super::pod_lines::{PodCondition, PodLine};

/// The columns of a terminal whose size is unknown.
const COLUMNS: usize = 80;
const ROWS: usize = 24;

/// Draws and prints lines.
#[derive(Debug)]
pub(super) struct Screen<W> {
    out: W,
    /// Gives the current columns and rows of the terminal; none without a terminal.
    terminal: Option<fn() -> (usize, usize)>,
    colours: bool,
    /// How many lines are to be drawn over.
    drawn: usize,
    /// The last printed line of each pod.
    printed: BTreeMap<String, String>,
}

impl Screen<io::Stdout> {
    /// The display on stdout.
    pub(super) fn of_stdout() -> Self {
        let out = io::stdout();
        let terminal = out.is_terminal().then_some(size as fn() -> (usize, usize));
        let colours = terminal.is_some() && std::env::var_os("NO_COLOR").is_none();
        Self::new(out, terminal, colours)
    }
}

impl Screen<io::Stderr> {
    /// The display on stderr, for errors.
    pub(super) fn of_stderr() -> Self {
        Self::new(io::stderr(), None, false)
    }
}

impl<W: Write> Screen<W> {
    fn new(out: W, terminal: Option<fn() -> (usize, usize)>, colours: bool) -> Self {
        Self { out, terminal, colours, drawn: 0, printed: BTreeMap::new() }
    }

    /// Whether the lines are redrawn, so that elapsed seconds are worth showing.
    pub(super) fn is_live(&self) -> bool {
        self.terminal.is_some()
    }

    /// Shows how pods are.
    pub(super) fn show(&mut self, lines: &[PodLine]) -> io::Result<()> {
        match self.terminal {
            Some(size) => self.draw(lines, size()),
            None => self.print_changes(lines),
        }
    }

    /// Prints a line for good, above those that are redrawn.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        self.erase()?;
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    fn erase(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.drawn) {
            0 => Ok(()),
            drawn => write!(self.out, "\x1b[{drawn}A\x1b[J"),
        }
    }

    fn draw(&mut self, lines: &[PodLine], (columns, rows): (usize, usize)) -> io::Result<()> {
        self.erase()?;
        let room = rows.saturating_sub(2).max(1);
        let shown = if lines.len() > room { room - 1 } else { lines.len() };
        for line in &lines[..shown] {
            self.write_line(line, columns)?;
        }
        let hidden = lines.len() - shown;
        if hidden > 0 {
            writeln!(self.out, "and {hidden} more: see them all with oarsman ps")?;
        }
        self.drawn = shown + usize::from(hidden > 0);
        self.out.flush()
    }

    fn write_line(&mut self, line: &PodLine, columns: usize) -> io::Result<()> {
        let text: String = format!("{}: {}", line.pod, line.text).chars().take(columns).collect();
        match (self.colours, line.condition) {
            (false, _) | (true, PodCondition::InProgress) => writeln!(self.out, "{text}"),
            (true, PodCondition::Healthy) => writeln!(self.out, "\x1b[32m{text}\x1b[0m"),
            (true, PodCondition::Failing) => writeln!(self.out, "\x1b[33m{text}\x1b[0m"),
        }
    }

    /// Without a terminal a line is printed only when it has changed.
    fn print_changes(&mut self, lines: &[PodLine]) -> io::Result<()> {
        for line in lines {
            if self.printed.get(&line.pod) != Some(&line.key) {
                writeln!(self.out, "{}: {}", line.pod, line.stable_text)?;
                self.printed.insert(line.pod.clone(), line.key.clone());
            }
        }
        self.printed.retain(|pod, _| lines.iter().any(|line| line.pod == *pod));
        self.out.flush()
    }
}

fn size() -> (usize, usize) {
    let told = rustix::termios::tcgetwinsize(io::stdout());
    let size = told.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    size.ok().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or((COLUMNS, ROWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pod: &str, text: &str, condition: PodCondition) -> PodLine {
        let text = text.to_owned();
        PodLine {
            pod: pod.to_owned(),
            stable_text: text.clone(),
            key: text.clone(),
            text,
            condition,
        }
    }

    fn written(screen: &mut Screen<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut screen.out)).unwrap()
    }

    #[test]
    fn without_a_terminal_only_changes_are_printed() {
        let mut screen = Screen::new(Vec::new(), None, false);
        let starting = [
            line("a", "starting", PodCondition::InProgress),
            line("b", "starting", PodCondition::InProgress),
        ];
        screen.show(&starting).unwrap();
        assert_eq!(written(&mut screen), "a: starting\nb: starting\n");
        screen.show(&starting).unwrap();
        assert_eq!(written(&mut screen), "");
        screen.show(&[line("a", "running", PodCondition::Healthy), starting[1].clone()]).unwrap();
        assert_eq!(written(&mut screen), "a: running\n");
        screen.show(&starting[1..]).unwrap();
        screen.show(&starting).unwrap();
        assert_eq!(written(&mut screen), "a: starting\n", "one that came back is told again");
    }

    #[test]
    fn on_a_terminal_lines_are_drawn_over_and_cut() {
        let mut screen = Screen::new(Vec::new(), Some(|| (12, 24)), true);
        screen.show(&[line("a", "starting up", PodCondition::InProgress)]).unwrap();
        assert_eq!(written(&mut screen), "a: starting \n");
        screen.show(&[line("a", "running", PodCondition::Healthy)]).unwrap();
        assert_eq!(written(&mut screen), "\x1b[1A\x1b[J\x1b[32ma: running\x1b[0m\n");
        screen.print("hello").unwrap();
        assert_eq!(written(&mut screen), "\x1b[1A\x1b[Jhello\n");
    }

    #[test]
    fn a_small_terminal_shows_what_it_has_room_for() {
        let mut screen = Screen::new(Vec::new(), Some(|| (80, 5)), false);
        let lines: Vec<PodLine> =
            ["a", "b", "c", "d"].map(|pod| line(pod, "running", PodCondition::Healthy)).into();
        screen.show(&lines).unwrap();
        let want = "a: running\nb: running\nand 2 more: see them all with oarsman ps\n";
        assert_eq!(written(&mut screen), want);
        screen.show(&lines[..3]).unwrap();
        assert_eq!(written(&mut screen), "\x1b[3A\x1b[Ja: running\nb: running\nc: running\n");
    }
}
