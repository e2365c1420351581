//! Containers' logs: the files that runtimes keep of what containers write, read for the server and for `oarsman logs`.

pub mod files;
mod follow;
mod line;
mod printer;
mod rotated;
mod tail;

pub use follow::{LogFollower, ReadProgress};
pub use line::LineSplitter;
pub use printer::{LogPrinter, PrintOptions};
