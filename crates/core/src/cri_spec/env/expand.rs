//! `$(NAME)` in a text stands for a variable's value; `$$` stands for `$`.

/// The text with every variable that `visible` knows replaced by its value; what it does not know stays as it is.
pub fn expand<'a>(text: &str, visible: impl Fn(&str) -> Option<&'a Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.extend_from_slice(before.as_bytes());
        rest = match reference(after) {
            Some((name, after)) => {
                match visible(name) {
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
    out
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
            let expanded = expand(text, |name| known.get(name));
            assert_eq!(String::from_utf8(expanded).unwrap(), expected, "{text}");
        }
    }
}
