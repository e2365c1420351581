//! From the text of a manifest or a configuration file to JSON, as kubectl and the Go kubelet read it.
//!
//! They read YAML 1.1: `0400` is octal and `yes` a boolean. The rows of the tests are the answers of `sigs.k8s.io/yaml`. What
//! a text may make us do is bounded, so that one with aliases of aliases is refused and not unfolded.

mod document;

use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Options, alias_limits, budget, options};

pub use document::ParsedDocument;

#[cfg(test)]
mod tests;

/// The most a manifest may have, in bytes.
pub const MANIFEST_LIMIT: usize = 10 << 20;
/// All text in it, with aliases unfolded.
const TEXT_LIMIT: usize = 2 * MANIFEST_LIMIT;
/// Lists, maps and values that come of aliases.
const UNFOLDED_LIMIT: usize = 50_000;

/// Why a text is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is no text at all.
    #[error("it is not text: byte {at} is none that UTF-8 has there; write it in YAML or JSON")]
    Binary {
        /// Which byte, counted from one.
        at: usize,
    },
    /// It is neither YAML nor JSON.
    #[error("it is not {language}: {why}; correct it, or finish writing it")]
    Syntax {
        /// What it was taken for.
        language: &'static str,
        /// What is wrong, and where.
        why: String,
    },
    /// There is nothing in it.
    #[error("it is empty or has nothing but comments; write a Pod into it, or remove it")]
    Empty,
    /// There is too much in it.
    #[error("it has {0} documents; a manifest here holds one Pod: give each a file of its own")]
    Several(usize),
}

/// Every document in a text that says something.
///
/// # Errors
/// When one of them is neither YAML nor JSON, or expands to more than the limit.
pub fn documents(bytes: &[u8]) -> Result<Vec<Value>, ManifestError> {
    Ok(parsed_documents(bytes)?.into_iter().map(|document| document.value).collect())
}

/// The same, with the keys that are said twice.
///
/// # Errors
/// The same.
pub fn parsed_documents(bytes: &[u8]) -> Result<Vec<ParsedDocument>, ManifestError> {
    let text = text(bytes)?;
    if text.trim_start().starts_with('{') {
        return from_json(text).map(|document| vec![document]);
    }
    let found = serde_saphyr::from_multiple_with_options::<ParsedDocument>(text, how());
    let documents = found.map_err(|error| syntax("YAML", &error))?;
    let says_something = |document: &ParsedDocument| !document.value.is_null();
    let settled =
        |document: ParsedDocument| ParsedDocument { value: settled(document.value), ..document };
    Ok(documents.into_iter().filter(says_something).map(settled).collect())
}

/// The one document that a text has.
///
/// # Errors
/// When there is none, or more than one.
pub fn one_document(bytes: &[u8]) -> Result<Value, ManifestError> {
    let mut documents = documents(bytes)?;
    match (documents.len(), documents.pop()) {
        (1, Some(document)) => Ok(document),
        (0, _) | (_, None) => Err(ManifestError::Empty),
        (several, Some(_)) => Err(ManifestError::Several(several)),
    }
}

fn text(bytes: &[u8]) -> Result<&str, ManifestError> {
    let binary = |at: usize| ManifestError::Binary { at: at + 1 };
    let text = std::str::from_utf8(bytes).map_err(|error| binary(error.valid_up_to()))?;
    match text.find('\0') {
        Some(at) => Err(binary(at)),
        None => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
    }
}

fn from_json(text: &str) -> Result<ParsedDocument, ManifestError> {
    serde_json::from_str(text).map_err(|error| syntax("JSON", &error))
}

/// One line, without the text around the place: there may be secrets in it.
fn syntax(language: &'static str, error: &dyn std::error::Error) -> ManifestError {
    let said = error.to_string();
    ManifestError::Syntax { language, why: said.lines().next().unwrap_or_default().to_owned() }
}

fn how() -> Options {
    options! {
        budget: budget! {
            max_total_scalar_bytes: TEXT_LIMIT,
            // A file may have any number of comments, and one anchor may be used often: what comes of it is bounded.
            max_buffered_comment_events: usize::MAX,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: alias_limits! { max_total_replayed_events: UNFOLDED_LIMIT },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        strict_booleans: false,
        emit_comments: false,
        with_snippet: false,
    }
}

/// Writes `1.0` and `1e3` as the whole numbers they are, as every program in Go does.
fn settled(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(&number).unwrap_or(number)),
        Value::Array(items) => Value::Array(items.into_iter().map(settled).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, field)| (name, settled(field)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other,
    }
}

fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    // A float without a fraction is written as its digits.
    format!("{float:.0}").parse::<i64>().ok().map(Number::from)
}
