//! The scripts of test containers, which the fake runtime and a real container both run.
//!
//! A script is the container's arguments, one step each, done in order; after the last one the program exits with 0. The binary `script` runs
//! them; a fake runtime interprets the same [`ScriptStep`]s, so that one suite of tests has one vocabulary on every runtime.
//!
//! | step                | what happens                                                        |
//! | ------------------- | ------------------------------------------------------------------- |
//! | `out:TEXT`          | a line on stdout                                                    |
//! | `err:TEXT`          | a line on stderr                                                    |
//! | `raw:TEXT`          | the text on stdout, with no newline after it                        |
//! | `fill:BYTES`        | that many bytes on stdout, in lines of 64 (see [`filler`])          |
//! | `numbers:BYTES/TIME` | numbered lines of 64 bytes on stdout, that many bytes a second for that long (see [`NumberedLines`]) |
//! | `cat:PATH`          | the file on stdout                                                  |
//! | `env:NAME`          | the variable's value as a line; fails if it is not set              |
//! | `id`                | `UID:GID` as a line                                                 |
//! | `pwd`               | the working directory as a line                                     |
//! | `write:PATH=TEXT`   | makes or replaces the file                                          |
//! | `touch:PATH`        | makes the file if it is not there                                   |
//! | `wait-file:PATH`    | waits until the file is there                                       |
//! | `sleep:DURATION`    | waits                                                               |
//! | `forever`           | waits until a signal ends the program                               |
//! | `alloc:BYTES`       | takes that much memory, writes to all of it, and keeps it           |
//! | `child:DURATION`    | starts a child that lives that long, and goes on                    |
//! | `listen:PORT`       | from now on answers every TCP connection with an HTTP 200 (below)   |
//! | `grpc:PORT`         | from now on answers gRPC health checks: all but `down` are SERVING  |
//! | `on-term:STEP,STEP` | what SIGTERM does from now on; the program goes on after the steps  |
//! | `on-term:ignore`    | SIGTERM does nothing from now on                                    |
//! | `exit:CODE`         | ends the program                                                    |
//!
//! In a real container, the path of an HTTP request may ask for another answer: `/status/NNN` for that status, `/file/PATH` for 200 if the file
//! is there and 503 if not, `/redirect/URL` for a redirect, `/hang` for none, `/huge` for a body of 1 GiB. `/print/TEXT` prints the text as a line,
//! and a check of the gRPC service `print` the line `grpc`: when a probe came is in the container's log.
//!
//! Durations are `250ms`, `3s`, `2m`; bytes are `4096`, `64Ki`, `8Mi`, `1Gi`. A script that cannot be parsed exits with [`EXIT_BAD_SCRIPT`]
//! before any step is done, and a step that fails with [`EXIT_FAILED_STEP`]; both print why on stderr. SIGTERM, and every other signal that ends
//! a program, exits with 128 and its number at once unless `on-term` says otherwise: process 1 of a container would not notice them without a
//! handler.

mod script;
mod values;

pub use script::{ScriptStep, parse};
pub use values::{NumberedLines, filler};

/// Exit code of a program whose script cannot be read.
pub const EXIT_BAD_SCRIPT: u8 = 2;
/// Exit code of a program one of whose steps failed.
pub const EXIT_FAILED_STEP: u8 = 1;

/// Why an argument is not a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// There is no step of that name, or its value is missing or superfluous.
    #[error("{argument:?} is not a step")]
    Unknown {
        /// The argument as given.
        argument: String,
    },
    /// The value after the colon does not fit the step.
    #[error("{argument:?} needs {needs}")]
    Value {
        /// The argument as given.
        argument: String,
        /// What would fit.
        needs: &'static str,
    },
}
