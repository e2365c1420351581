//! Named tasks, and the state that they share.
//!
//! [`Tasks`] owns loops and starts one that panicked again. [`Guarded`] is a value behind a lock, with a signal for the task that works on its
//! changes. [`ordered_watch`] is a value that many tasks watch, which are woken in a fixed order, so that a simulated run can be repeated.

mod guarded;
pub mod ordered_watch;
mod task_name;
mod tasks;

pub use guarded::Guarded;
pub use task_name::TaskName;
pub use tasks::{RESTART_AFTER, TaskPanics, Tasks, restarted};
