//! Client and server of the CRI, talking to each other over a real unix socket.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic, also in its helpers"
)]

mod deadlines;
mod events;
mod failures;
mod harness;
mod recorder;
mod round_trip;
mod script;
mod shutdown;
