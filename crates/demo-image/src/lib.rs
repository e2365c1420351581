//! The image of the examples. Its program (`src/bin/oarsman-demo`) was compiled into one static file when this crate was, so that the first
//! pod of a new machine needs no registry and no other tool.

mod archive;

pub use archive::archive;

/// The name of the image. No registry has it.
pub const NAME: &str = "oarsman.local/demo:1";

/// Where the program is in the image, and what starts it.
pub const PROGRAM_PATH: &str = "/bin/demo";

/// A first process that sets no handler never gets SIGTERM, and the program has nothing to tidy up.
pub const STOP_SIGNAL: &str = "SIGKILL";

/// The program. None if the machine that this was built on has no static C library.
pub fn program() -> Option<&'static [u8]> {
    const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/demo"));
    Some(PROGRAM).filter(|program| !program.is_empty())
}
