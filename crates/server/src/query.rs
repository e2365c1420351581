//! Parses the query of a request's URL.

/// Names and values in order, percent-decoded.
pub fn read(query: &str) -> Vec<(String, String)> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (percent_decode(name), percent_decode(value))
    };
    parts.map(pair).collect()
}

/// A path, percent-decoded; a plus sign stands for itself there.
pub fn unescaped_path(path: &str) -> String {
    percent_decode(&path.replace('+', "%2B"))
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let escaped = (*first == b'%').then(|| tail.get(..2).and_then(hex)).flatten();
        match (escaped, first) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (None, b'+') => bytes.push(b' '),
            (None, byte) => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_sign_stands_for_itself_in_a_path() {
        assert_eq!(unescaped_path("/a+b%20c%2Fd"), "/a+b c/d");
    }

    #[test]
    fn queries_are_read_with_what_is_escaped() {
        let rows: [(&str, &[(&str, &str)]); 5] = [
            ("", &[]),
            ("follow=true&tailLines=10", &[("follow", "true"), ("tailLines", "10")]),
            ("sinceTime=2026-01-01T00%3A00%3a00Z", &[("sinceTime", "2026-01-01T00:00:00Z")]),
            ("a+b=c%20d&&e", &[("a b", "c d"), ("e", "")]),
            ("x=%&y=%4&z=%zz", &[("x", "%"), ("y", "%4"), ("z", "%zz")]),
        ];
        for (text, want) in rows {
            let found = read(text);
            let found: Vec<_> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
            assert_eq!(found, want, "{text}");
        }
    }
}
