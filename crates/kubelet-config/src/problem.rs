//! What is wrong with a configuration.

use std::fmt;

use crate::field_path::FieldPath;

/// Something that is wrong, or odd: where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Who said it: a file or a flag; none when it follows from nobody's word alone.
    pub source: Option<String>,
    /// Which field it is about; empty when it is about all of the source.
    pub field: FieldPath,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl Problem {
    /// Of a field.
    pub(crate) fn of(field: FieldPath, message: impl Into<String>) -> Self {
        Self { source: None, field, message: message.into() }
    }

    /// Of a whole text.
    pub(crate) fn of_all(message: impl Into<String>) -> Self {
        Self::of(FieldPath::default(), message)
    }

    /// The same, with who said it.
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

/// Everything that is wrong, a line each.
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
