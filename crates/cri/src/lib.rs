//! The Runtime seam, the client of a CRI runtime behind a unix socket, and the server of any Runtime.
//!
//! Everything that runs containers is an `Arc<dyn Runtime>`. [`Client`] makes one of a remote
//! runtime; [`serve`] lends one to others, such as crictl or a Go kubelet.

mod client;
mod deadline;
mod error;
mod runtime;
mod seconds;
mod server;
mod wire;

pub use client::{Client, InvalidEndpoint, Keeper};
pub use deadline::Deadlines;
pub use error::{Code, CriError, Result};
pub use runtime::{EventStream, Runtime, RuntimeLayer, Streaming, Subject};
pub use server::{ServeError, serve};
