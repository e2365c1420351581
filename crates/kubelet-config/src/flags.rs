//! The kubelet's flags, all of them from one table.
//!
//! They are read by a parser of our own, since what the Go kubelet's accepts is not what clap's does: `_` for `-`, booleans that
//! take a value only after `=`, values that begin with `-`, the last of several values that contradict each other, and maps and
//! lists that grow with every repetition. Units and scripts that start kubelets rely on all of that.

mod effective;
mod help;
mod parse;
mod program;
mod removed;
mod table;
mod value;

pub use effective::effective_values;
pub use help::help;
pub use parse::{ParsedFlags, RequestedAction, parse};
pub use program::ProgramFlags;
pub use table::all;
pub use value::FlagKind;

/// A flag: its name, the kind of its value, and its help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Its name, without dashes before it.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: FlagKind,
    /// The field of the configuration that it sets; empty for a flag of the program itself.
    pub field: &'static str,
    /// Whether it should be used.
    pub status: FlagStatus,
    /// Its help text.
    pub help: &'static str,
}

/// Whether a flag should be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagStatus {
    /// There is no field for it.
    Current,
    /// There is a field that should be used instead.
    Deprecated,
    /// It is accepted, has no effect, and will be removed.
    NoOp,
    /// The Go kubelet does not have it.
    OarsmanOnly,
}
