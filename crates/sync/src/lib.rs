//! State that tasks share.
//!
//! [`Guarded`] is a value behind a lock, with a signal for the task that works on its changes. [`latest`] is a value that many
//! tasks watch, which are woken in a fixed order, so that a simulated run can be repeated.

mod guarded;
pub mod latest;

pub use guarded::Guarded;
