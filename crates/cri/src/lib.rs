//! The Runtime seam, the client of a CRI runtime behind a unix socket, and the server of any Runtime.
//!
//! Everything that runs containers is an `Arc<dyn Runtime>`. [`RemoteRuntime`] makes one of a remote
//! runtime; [`serve`] lends one to others, such as crictl or a Go kubelet.

mod client;
mod deadline;
mod error;
mod runtime;
mod seconds;
mod server;
mod streaming_session;
mod wire;

pub use client::{ConnectionHolder, InvalidEndpoint, RemoteRuntime};
pub use deadline::Deadlines;
pub use error::{CriError, ErrorCode, Result};
pub use runtime::{EventStream, InfoTarget, Runtime, RuntimeLayer, StreamingEndpoint};
pub use server::{ServeError, serve};
pub use streaming_session::{SessionPurpose, SessionStream, StreamingSession};
