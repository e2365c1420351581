//! Garbage collection: dead containers, sandboxes, their logs, and images.
//!
//! These functions only choose. The caller removes, and reads the runtime again before it asks for the next
//! kind: a sandbox is garbage only once its containers are really gone.

pub mod containers;
pub mod images;
pub mod logs;
