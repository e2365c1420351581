//! The Runtime seam, the client of a CRI runtime behind a unix socket, and the server of any Runtime.

mod error;
mod runtime;

pub use error::{Code, CriError, Result};
pub use runtime::{EventStream, Runtime, Streaming, Subject};
