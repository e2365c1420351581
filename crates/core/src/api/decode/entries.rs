//! The entries of ConfigMaps and Secrets: what people get wrong in them, told by key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::DecodeError;
use crate::api::error::{ErrorKind, FieldError};
use crate::api::path::Path;

#[cfg(test)]
mod tests;

/// What the values of a map are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    Text,
    /// Secret text: errors do not repeat it.
    HiddenText,
    /// Bytes in base64, as in `data` of a Secret.
    Base64,
    /// Secret bytes: errors do not repeat them.
    HiddenBase64,
}

impl Entries {
    fn are_encoded(self) -> bool {
        matches!(self, Self::Base64 | Self::HiddenBase64)
    }

    fn are_hidden(self) -> bool {
        matches!(self, Self::HiddenText | Self::HiddenBase64)
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Text | Self::HiddenText => "must be text: put it in quotes",
            Self::Base64 => "must be base64: write the output of `base64 -w0`, or text in data",
            Self::HiddenBase64 => {
                "must be base64: write the output of `base64 -w0`, or text in stringData"
            }
        }
    }
}

/// Brings the named maps of an object into the form that its type reads.
pub(super) fn settle(value: &mut Value, maps: &[(&str, Entries)]) -> Result<(), DecodeError> {
    let mut wrong = Vec::new();
    for (field, entries) in maps {
        let at = Path::root(field);
        match value.get_mut(*field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => settle_map(&at, map, *entries, &mut wrong),
            Some(_) => wrong.push(complaint(&at, None, "must be a map of keys to values")),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(DecodeError::Fields(wrong)) }
}

fn settle_map(
    at: &Path,
    map: &mut Map<String, Value>,
    entries: Entries,
    wrong: &mut Vec<FieldError>,
) {
    for (key, value) in map {
        match value {
            // Nothing after the colon is an empty text.
            Value::Null => *value = Value::String(String::new()),
            Value::String(text) if entries.are_encoded() => {
                // As in Go, lines may be broken anywhere.
                text.retain(|c| !matches!(c, '\r' | '\n'));
                if STANDARD.decode(&*text).is_err() {
                    wrong.push(complaint(&at.key(key), None, entries.wanted()));
                }
            }
            Value::String(_) => {}
            other => {
                let shown = (!entries.are_hidden()).then(|| other.clone());
                wrong.push(complaint(&at.key(key), shown, entries.wanted()));
            }
        }
    }
}

fn complaint(at: &Path, value: Option<Value>, detail: &str) -> FieldError {
    let kind = ErrorKind::TypeInvalid;
    FieldError { field: at.to_string(), kind, value, detail: detail.to_owned() }
}
