//! How large the environment and the command of a container may be.
//!
//! References between variables double a value with every step, so that a spec of a kilobyte would fill any memory. The limits are those
//! that the kernel has for a new process (`MAX_ARG_STRLEN`, and a quarter of the usual stack): beyond them a container does
//! not start where the stack limit is the usual one.

use crate::cri_spec::error::{ConfigError, VariableError};

/// No value and no argument may be longer, in bytes.
pub(super) const LONGEST_VALUE: usize = 128 * 1024;
/// All names, values and arguments of a container together, in bytes.
const MOST_IN_ALL: usize = 2 * 1024 * 1024;

/// What is left of the bytes that a container's environment and command may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessLimits {
    left: usize,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self { left: MOST_IN_ALL }
    }
}

impl ProcessLimits {
    /// Takes this many bytes for a field of a container.
    pub(super) fn take(&mut self, at: &Field<'_>, bytes: usize) -> Result<(), ConfigError> {
        let left = self.left.checked_sub(bytes).ok_or_else(|| at.exceeds_total())?;
        self.left = left;
        Ok(())
    }

    /// Gives the bytes of a value back that another one has replaced.
    pub(super) fn give_back(&mut self, bytes: usize) {
        self.left += bytes;
    }
}

/// Where in a container something is, for errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) container: &'a str,
    /// `env`, `envFrom`, `command` or `args`.
    pub(super) list: &'static str,
    /// Which of the list.
    pub(super) entry: Entry<'a>,
}

/// One entry of a list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry<'a> {
    Name(&'a str),
    Index(usize),
}

impl Field<'_> {
    /// Refuses a value that is too long by itself.
    pub(super) fn check(&self, bytes: usize) -> Result<(), ConfigError> {
        if bytes <= LONGEST_VALUE { Ok(()) } else { Err(self.too_long()) }
    }

    /// The error of a value that is too long by itself.
    pub(super) fn too_long(&self) -> ConfigError {
        let (field, container) = (self.text(), self.container.to_owned());
        VariableError::TooLong { field, container, limit: LONGEST_VALUE }.into()
    }

    fn exceeds_total(&self) -> ConfigError {
        let (field, container) = (self.text(), self.container.to_owned());
        VariableError::ExceedsTotal { field, container, limit: MOST_IN_ALL }.into()
    }

    fn text(&self) -> String {
        match self.entry {
            Entry::Name(name) => format!("{} {name}", self.list),
            Entry::Index(index) => format!("{}[{index}]", self.list),
        }
    }
}
