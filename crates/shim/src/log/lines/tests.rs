//! Output becomes lines of the CRI log format.

use super::*;

fn split(chunks: &[&[u8]]) -> Vec<String> {
    let mut splitter = CriLineSplitter::new(WrittenStream::Stderr);
    let mut found = Vec::new();
    let mut keep = |line: &[u8]| found.push(String::from_utf8_lossy(line).into_owned());
    for chunk in chunks {
        splitter.add(chunk, Timestamp::UNIX_EPOCH, &mut keep);
    }
    splitter.end(Timestamp::UNIX_EPOCH, &mut keep);
    let start = "1970-01-01T00:00:00.000000000Z stderr ";
    found.iter().map(|line| line.strip_prefix(start).unwrap().to_owned()).collect()
}

#[test]
fn lines_are_the_same_however_they_are_read() {
    let expected = ["F one\n", "F \n", "F two\n", "P three\n"];
    assert_eq!(split(&[b"one\n\ntwo\nthree"]), expected);
    let bytes: Vec<&[u8]> = b"one\n\ntwo\nthree".chunks(1).collect();
    assert_eq!(split(&bytes), expected);
    assert_eq!(split(&[b""]), [""; 0]);
}

#[test]
fn a_long_line_is_written_in_parts_of_the_same_size() {
    let long = vec![b'x'; MOST_TEXT * 2 + 5];
    let text = |length: usize| "x".repeat(length);
    let parts = split(&[&long, b"\n"]);
    let expected = [
        format!("P {}\n", text(MOST_TEXT)),
        format!("P {}\n", text(MOST_TEXT)),
        format!("F {}\n", text(5)),
    ];
    assert_eq!(parts, expected);
    // A line of precisely that length is whole.
    let parts = split(&[&long[..MOST_TEXT], b"\nnext\n"]);
    assert_eq!(parts, [format!("F {}\n", text(MOST_TEXT)), "F next\n".to_owned()]);
}
