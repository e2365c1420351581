//! Lines of a container's log, read in two pieces and printed.

use std::convert::Infallible;

use oarsman_server::logs::{LineSplitter, LogPrinter, PrintOptions};

use super::texts;
use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget = FuzzTarget { name: "log-lines", max_len: 2048, run, seeds };

const PREFIX: &str = "[a] ";

fn run(bytes: &[u8]) {
    let Some((first, log)) = bytes.split_first() else { return };
    let cut = usize::from(*first).min(log.len());
    let whole = lines(&[log]);
    assert_eq!(lines(&[&log[..cut], &log[cut..]]), whole, "lines depend on where a read ended");
    let options = PrintOptions {
        since: "2026-01-01T00:00:00Z".parse().ok().filter(|_| first % 2 == 1),
        prefix: Some(PREFIX.to_owned()).filter(|_| first % 3 == 1),
        timestamps: first % 5 < 2,
    };
    let (mut joined, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
    let (mut one, mut two) = (LogPrinter::new(options.clone()), LogPrinter::new(options));
    for line in &whole {
        assert!(one.print_joined(line, &mut joined).is_ok(), "printing into memory fails");
        assert!(two.print(line, &mut out, &mut err).is_ok(), "printing into memory fails");
    }
    assert_eq!(joined.len(), out.len() + err.len(), "a line is lost between the streams");
    let most = log.len() + whole.len() * (PREFIX.len() + 1);
    assert!(joined.len() <= most, "{} bytes of {}", joined.len(), log.len());
}

fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
    let mut each = |line: &[u8]| {
        lines.push(line.to_vec());
        Ok::<(), Infallible>(())
    };
    let fed = pieces.iter().try_for_each(|piece| splitter.feed(piece, &mut each));
    let Ok(()) = fed.and_then(|()| splitter.end(&mut each));
    lines
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "\x01x2026-01-01T00:00:01.5Z stdout F one\n2026-01-01T00:00:02+01:00 stderr P half\n2026-01-01T00:00:03Z stderr F:tag rest\n",
        "~2026-01-01T00:00:01Z stdout F\nnot a line\n\n2025-12-31T23:59:59.999999999Z stdout P x",
    ])
}
