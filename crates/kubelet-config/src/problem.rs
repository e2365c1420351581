//! Problems of a configuration: source, field and message.

use std::fmt;

use crate::field_path::FieldPath;

/// One problem: where it is, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file or the flag; none when the problem follows from several sources together.
    pub source: Option<String>,
    /// The field; empty when the problem concerns the whole source.
    pub field: FieldPath,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl Problem {
    /// A problem of a field.
    pub(crate) fn of(field: FieldPath, message: impl Into<String>) -> Self {
        Self { source: None, field, message: message.into() }
    }

    /// A problem of a whole source.
    pub(crate) fn of_all(message: impl Into<String>) -> Self {
        Self::of(FieldPath::default(), message)
    }

    /// The same problem, with its source.
    #[must_use]
    pub(crate) fn in_source(mut self, source: &str) -> Self {
        self.source = Some(source.to_owned());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source}: ")?;
        }
        if self.field != FieldPath::default() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// All problems, a line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            let line = if number == 0 { "" } else { "\n" };
            write!(f, "{line}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
