//! Client and server of the CRI, talking to each other over a real unix socket.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test may panic, also in its helpers"
)]

mod calls;
mod deadlines;
mod events;
mod failures;
mod harness;
mod large_lists;
mod recording_runtime;
mod round_trip;
mod shutdown;
mod streamed_lists;
mod trace_context;
