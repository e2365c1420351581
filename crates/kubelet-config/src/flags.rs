//! The kubelet's flags, all of them from one table.
//!
//! They are read by a parser of our own, since what the Go kubelet's accepts is not what clap's does: `_` for `-`, booleans that
//! take a value only after `=`, values that begin with `-`, the last of several values that contradict each other, and maps and
//! lists that grow with every repetition. Units and scripts that start kubelets rely on all of that.

mod help;
mod parse;
mod program;
mod removed;
mod table;
mod value;

pub use help::help;
pub use parse::{ParsedFlags, RequestedAction, parse};
pub use program::ProgramFlags;
pub use table::all;
pub use value::FlagKind;

/// A flag: its name, what it takes, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Its name, without dashes before it.
    pub name: &'static str,
    /// What it takes.
    pub kind: FlagKind,
    /// The field of the configuration that it sets; empty when it is the program's own.
    pub field: &'static str,
    /// What people think of it.
    pub status: FlagStatus,
    /// What it is for.
    pub help: &'static str,
}

/// Whether a flag should be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagStatus {
    /// There is no other way.
    Current,
    /// The field does the same.
    Deprecated,
    /// It is taken, does nothing, and will be gone one day.
    NoOp,
    /// Only we have it.
    OarsmanOnly,
}
