//! What is wrong with a field, as data.

use std::fmt;

use serde_json::Value;

use super::path::Path;

/// In which way a field is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// It must be there and is not.
    Required,
    /// Its value is malformed or out of range.
    Invalid,
    /// Its value must be unique and is not.
    Duplicate,
    /// Its value is none of those it may have.
    NotSupported,
    /// It may not be there under the circumstances.
    Forbidden,
    /// Its value is too long to be repeated.
    TooLong,
    /// It has too many items.
    TooMany,
    /// What it refers to does not exist.
    NotFound,
    /// Its value is of another type: a word instead of a number.
    TypeInvalid,
}

impl ErrorKind {
    /// The reason an API server gives for it, for programs to read.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Duplicate => "Duplicate value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Which field, such as `spec.containers[0].name`.
    pub field: String,
    /// In which way it is wrong.
    pub kind: ErrorKind,
    /// The value that is wrong, where repeating it helps.
    pub value: Option<Value>,
    /// What would be right; may be empty where the kind says it all.
    pub detail: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.kind.title())?;
        if let Some(value) = &self.value {
            write!(f, ": {value}")?;
        }
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl std::error::Error for FieldError {}

/// The errors found so far. Every check adds to it and goes on, so that a person sees all of
/// them at once.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<FieldError>);

impl Errors {
    pub(super) fn into_list(self) -> Vec<FieldError> {
        self.0
    }

    /// How many there are; a caller that compares before and after learns whether a part is good.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn required(&mut self, at: &Path, detail: &str) {
        self.push(at, ErrorKind::Required, None, detail.to_owned());
    }

    pub(super) fn invalid(
        &mut self,
        at: &Path,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.push(at, ErrorKind::Invalid, Some(value.into()), detail.into());
    }

    /// One error for each thing that is wrong with the value.
    pub(super) fn invalid_for(&mut self, at: &Path, value: &str, complaints: Vec<String>) {
        for complaint in complaints {
            self.invalid(at, value, complaint);
        }
    }

    pub(super) fn duplicate(&mut self, at: &Path, value: &str) {
        self.push(at, ErrorKind::Duplicate, Some(value.into()), String::new());
    }

    pub(super) fn not_supported(&mut self, at: &Path, value: &str, supported: &[&str]) {
        let detail = format!("supported values: {}", supported.join(", "));
        self.push(at, ErrorKind::NotSupported, Some(value.into()), detail);
    }

    /// Complains unless the value is one of the supported.
    pub(super) fn check_supported(&mut self, at: &Path, value: &str, supported: &[&str]) {
        if !supported.contains(&value) {
            self.not_supported(at, value, supported);
        }
    }

    /// Complains unless the value is there and one of the supported.
    pub(super) fn check_choice(&mut self, at: &Path, value: &str, supported: &[&str]) {
        if value.is_empty() {
            self.required(at, "");
        } else {
            self.check_supported(at, value, supported);
        }
    }

    /// Complains when a text is missing.
    pub(super) fn check_present(&mut self, at: &Path, value: &str) {
        if value.is_empty() {
            self.required(at, "");
        }
    }

    pub(super) fn forbidden(&mut self, at: &Path, detail: &str) {
        self.push(at, ErrorKind::Forbidden, None, detail.to_owned());
    }

    pub(super) fn too_long(&mut self, at: &Path, most: usize) {
        self.push(at, ErrorKind::TooLong, None, format!("may not be longer than {most} bytes"));
    }

    pub(super) fn too_many(&mut self, at: &Path, count: usize, most: usize) {
        let detail = format!("there may be {most} of them");
        self.push(at, ErrorKind::TooMany, Some(count.into()), detail);
    }

    pub(super) fn not_found(&mut self, at: &Path, value: &str, detail: &str) {
        self.push(at, ErrorKind::NotFound, Some(value.into()), detail.to_owned());
    }

    fn push(&mut self, at: &Path, kind: ErrorKind, value: Option<Value>, detail: String) {
        self.0.push(FieldError { field: at.to_string(), kind, value, detail });
    }
}

#[cfg(test)]
mod tests {
    use super::{Errors, Path};

    #[test]
    fn an_error_has_the_text_of_kubernetes() {
        let at = Path::root("spec").child("containers").index(0).child("name");
        let mut errors = Errors::default();
        errors.required(&at, "");
        errors.invalid(&at, "A_b", "use lower case");
        errors.not_supported(&at, "x", &["a", "b"]);
        errors.too_many(&at, 21, 20);
        let texts: Vec<String> = errors.into_list().iter().map(ToString::to_string).collect();
        let expected = [
            "spec.containers[0].name: Required value",
            "spec.containers[0].name: Invalid value: \"A_b\": use lower case",
            "spec.containers[0].name: Unsupported value: \"x\": supported values: a, b",
            "spec.containers[0].name: Too many: 21: there may be 20 of them",
        ];
        assert_eq!(texts, expected);
    }
}
