//! Ids of sandboxes and containers: 64 random hexadecimal digits, as other runtimes have them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Outcome, failed};

const RANDOM: &str = "/dev/urandom";
const BYTES: usize = 32;

/// A new id.
pub(crate) fn new_id() -> Outcome<String> {
    let mut bytes = [0; BYTES];
    let read = File::open(RANDOM).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(failed("read", Path::new(RANDOM)))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
