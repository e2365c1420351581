//! The image as an archive, in the form that `docker save` writes and all tools read.

use std::io;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::{NAME, PROGRAM_PATH, STOP_SIGNAL, program};

const LAYER: &str = "layer.tar";
const CONFIG: &str = "config.json";

/// The archive. The same program makes the same bytes.
///
/// # Errors
/// When this build has no demo program.
pub fn archive() -> io::Result<Vec<u8>> {
    let program = program().ok_or_else(|| {
        io::Error::other(
            "this program was built on a machine without static C library, so it has no demo image",
        )
    })?;
    let layer = layer(program)?;
    let manifest = json!([{ "Config": CONFIG, "RepoTags": [NAME], "Layers": [LAYER] }]);
    let mut archive = Builder::new(Vec::new());
    append(&mut archive, "manifest.json", 0o644, manifest.to_string().as_bytes())?;
    append(&mut archive, CONFIG, 0o644, config(&layer).to_string().as_bytes())?;
    append(&mut archive, LAYER, 0o644, &layer)?;
    archive.into_inner()
}

fn layer(program: &[u8]) -> io::Result<Vec<u8>> {
    let mut layer = Builder::new(Vec::new());
    for (path, mode) in [("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)] {
        let mut header = header(mode, 0);
        header.set_entry_type(EntryType::Directory);
        layer.append_data(&mut header, path, io::empty())?;
    }
    append(&mut layer, PROGRAM_PATH.trim_start_matches('/'), 0o755, program)?;
    append(&mut layer, "etc/passwd", 0o644, b"root:x:0:0:root:/:/bin/demo\n")?;
    append(&mut layer, "etc/group", 0o644, b"root:x:0:\n")?;
    layer.into_inner()
}

fn config(layer: &[u8]) -> Value {
    let digest: String = Sha256::digest(layer).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Entrypoint": [PROGRAM_PATH],
            "Cmd": ["serve"],
            "Env": ["PATH=/bin"],
            "StopSignal": STOP_SIGNAL,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
    })
}

/// As Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn append(archive: &mut Builder<Vec<u8>>, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    archive.append_data(&mut header(mode, bytes.len()), path, bytes)
}

fn header(mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_mode(mode);
    header.set_size(size as u64);
    header
}
