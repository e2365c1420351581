//! Text of containers and registries on the terminal of an administrator.

/// Removes what could control the terminal or turn the direction of writing; colours and line breaks stay.
pub(crate) fn strip_control_sequences(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        kept.push_str(&rest[..at]);
        let colour = rest[at..].strip_prefix("\x1b[").and_then(|after| {
            let end = after.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
            after[end..].starts_with('m').then_some(end)
        });
        let length = colour.map_or(1, |end| "\x1b[".len() + end + 1);
        if colour.is_some() {
            kept.push_str(&rest[at..at + length]);
        }
        rest = &rest[at + length..];
    }
    kept.push_str(rest);
    let is_bidi = |letter| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let may_stay = |letter: char| matches!(letter, '\t' | '\n' | '\x1b') || !letter.is_control();
    kept.retain(|letter| may_stay(letter) && !is_bidi(letter));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_other_than_colours_are_removed() {
        let rows = [
            ("plain\ttext", "plain\ttext"),
            ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
            ("\x1b[2J\x1b[Hgone", "[2J[Hgone"),
            ("\x1b]0;title\x07", "]0;title"),
            ("over\rwritten", "overwritten"),
            ("end\x1b", "end"),
            ("\x1b]52;c;cm0gLXJmIC8=\x07\x1b[2J", "]52;c;cm0gLXJmIC8=[2J"),
            ("a\u{202e}b\nc", "ab\nc"),
            ("\x1b[31", "[31"),
        ];
        for (line, want) in rows {
            assert_eq!(strip_control_sequences(line), want, "{line:?}");
        }
    }
}
