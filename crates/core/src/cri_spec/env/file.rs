//! Variables that an init container wrote into a file.
//!
//! The form is strict: `NAME='value'` a line, everything between the quotes counts, lines breaks too. Blanks before the
//! name, empty lines and comments do not; blanks after the `=` leave the variable empty, as in a shell.

use k8s_openapi::api::core::v1::FileKeySelector;

use super::lookup::Lookup;
use crate::cri_spec::error::{ConfigError, VariableError};

const BLANKS: [char; 2] = [' ', '\t'];

/// The value of a key; none when it is optional and not there. An empty value counts as none.
pub(super) fn value(
    lookup: &Lookup,
    variable: &str,
    wanted: &FileKeySelector,
) -> Result<Option<String>, ConfigError> {
    let (volume, path) = (wanted.volume_name.clone(), wanted.path.clone());
    let optional = wanted.optional.unwrap_or_default();
    let Some(text) = lookup.files.get(&(volume.clone(), path.clone())) else {
        let variable = variable.to_owned();
        let error = VariableError::NoFile { variable, path, volume };
        return if optional { Ok(None) } else { Err(error.into()) };
    };
    let found = find(text, &wanted.key);
    let found = found.map_err(|line| VariableError::File { path: path.clone(), volume, line })?;
    match found.filter(|value| !value.is_empty()) {
        None if !optional => Err(VariableError::NoFileKey { key: wanted.key.clone(), path }.into()),
        value => Ok(value),
    }
}

/// The value of a key, or the line that cannot be understood. Lines after the key are not looked at.
fn find(text: &str, key: &str) -> Result<Option<String>, usize> {
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let (line, number) = (line.trim_start_matches(BLANKS), index + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(number)?;
        if name.is_empty() || name.ends_with(BLANKS) {
            return Err(number);
        }
        let value = match value.starts_with(BLANKS) {
            true => String::new(),
            false => quoted(value.strip_prefix('\'').ok_or(number)?, &mut lines).ok_or(number)?,
        };
        if name == key {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// What stands before the closing quote, over as many lines as it takes; none when something else follows it.
fn quoted<'a>(
    first: &'a str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Option<String> {
    let (mut value, mut rest) = (String::new(), first);
    loop {
        if let Some((last, after)) = rest.split_once('\'') {
            let after = after.trim_start_matches(BLANKS);
            value.push_str(last);
            return (after.is_empty() || after.starts_with('#')).then_some(value);
        }
        value.push_str(rest);
        value.push('\n');
        rest = lines.next()?.1;
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_value_stands_between_single_quotes() {
        let value = |text: &str| Ok(Some(text.to_owned()));
        let rows = [
            ("A='x'", value("x")),
            ("  \tA='x'  # why", value("x")),
            ("# A='no'\n\n   \nB='b'\nA='a'", value("a")),
            ("A='one\ntwo'\n", value("one\ntwo")),
            ("A='$(B) \\n \"'", value("$(B) \\n \"")),
            ("A=''", value("")),
            ("A= 'x'", value("")),
            ("B='b'", Ok(None)),
            ("", Ok(None)),
            ("A='first'\nA='second'", value("first")),
            ("A", Err(1)),
            ("\nA =x", Err(2)),
            ("='x'", Err(1)),
            ("A=x", Err(1)),
            ("A=\"x\"", Err(1)),
            ("A='x' y", Err(1)),
            ("B='b'\nA='x\ny", Err(2)),
            ("A='a'\nbroken", value("a")),
        ];
        for (text, expected) in rows {
            assert_eq!(find(text, "A"), expected, "{text:?}");
        }
    }
}
