//! `$(NAME)` in a text stands for a variable's value; `$$` stands for `$`.

/// The text with every variable that `visible` knows replaced by its value; what it does not know stays as it is. None when it would
/// become longer than `limit`: that much is never made.
pub fn expand<'a>(
    text: &str,
    limit: usize,
    visible: impl Fn(&str) -> Option<&'a Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len().min(limit));
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.extend_from_slice(before.as_bytes());
        rest = match reference(after) {
            Some((name, after)) => {
                match visible(name) {
                    Some(value) if out.len() + value.len() > limit => return None,
                    Some(value) => out.extend_from_slice(value),
                    None => out.extend_from_slice(format!("$({name})").as_bytes()),
                }
                after
            }
            None => {
                out.push(b'$');
                after.strip_prefix('$').unwrap_or(after)
            }
        };
    }
    out.extend_from_slice(rest.as_bytes());
    (out.len() <= limit).then_some(out)
}

/// The name in `(NAME)` and what comes after it.
fn reference(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('(')?.split_once(')')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn references_are_replaced_and_everything_else_stays() {
        let known = [("A", "a"), ("B", "$(A)"), ("EMPTY", ""), ("", "nameless"), ("$", "dollar")];
        let known: BTreeMap<_, _> =
            known.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let rows = [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "a"),
            ("x$(A)y$(A)z", "xayaz"),
            ("$(B)", "$(A)"),
            ("$(EMPTY)", ""),
            ("$(NONE)", "$(NONE)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$a"),
            ("$$$$(A)", "$$(A)"),
            ("$", "$"),
            ("a$", "a$"),
            ("$$", "$"),
            ("$A", "$A"),
            ("$(A", "$(A"),
            ("$()", "nameless"),
            ("$($)", "dollar"),
            ("$(NONE)$(A)", "$(NONE)a"),
            ("$ä$(A)", "$äa"),
            ("$(A)(B)", "a(B)"),
        ];
        for (text, expected) in rows {
            let expanded = expand(text, 20, |name| known.get(name)).unwrap();
            assert_eq!(String::from_utf8(expanded).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_that_becomes_too_long_is_not_expanded() {
        let known = vec![b'x'; 10];
        for (text, limit, fits) in [
            ("$(A)$(A)", 20, true),
            ("$(A)$(A)", 19, false),
            ("$(A)$(A)y", 20, false),
            ("plain", 5, true),
            ("plain", 4, false),
        ] {
            assert_eq!(expand(text, limit, |_| Some(&known)).is_some(), fits, "{text} {limit}");
        }
    }
}
