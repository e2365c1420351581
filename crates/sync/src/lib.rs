//! State that tasks share.
//!
//! [`Guarded`] is a value behind a lock, with a signal for the task that works on its changes. [`ordered_watch`] is a value that many
//! tasks watch, which are woken in a fixed order, so that a simulated run can be repeated.

mod guarded;
pub mod ordered_watch;

pub use guarded::Guarded;
