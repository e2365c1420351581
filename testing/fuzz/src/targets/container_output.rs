//! What a container writes, as lines of its log.

use oarsman_shim::fuzz_log_lines;

use crate::FuzzTarget;

pub(crate) const TARGET: FuzzTarget =
    FuzzTarget { name: "container-output", max_len: 40_000, run, seeds };

fn run(bytes: &[u8]) {
    if let Some((cut, output)) = bytes.split_first() {
        // Cuts may be beyond what one byte can say.
        fuzz_log_lines(output, (usize::from(*cut) * 157).min(output.len()));
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let long = "x".repeat(16_384);
    [
        String::from("\x02one\n\ntwo\nthree"),
        format!("i{long}\n{long}y\nz"),
        format!("\x68{long}{long}"),
    ]
    .into_iter()
    .map(String::into_bytes)
    .collect()
}
