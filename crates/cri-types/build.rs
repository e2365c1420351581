//! Generates the Rust messages from `proto/`, without a protoc on the machine.

use std::error::Error;

/// The two services; everything else is imported by them.
const SERVICES: [&str; 2] = ["runtime/v1/runtime_service.proto", "runtime/v1/image_service.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    let descriptors = protox::compile(SERVICES, ["proto"])?;
    // By file: the time stamp of a directory is another one in every clone, and all crates would be built again.
    for file in &descriptors.file {
        println!("cargo::rerun-if-changed=proto/{}", file.name());
    }
    prost_build::Config::new()
        .btree_map(["."])
        // Holds passwords: src/redact.rs writes its Debug by hand.
        .skip_debug([".runtime.v1.AuthConfig"])
        .compile_fds(descriptors)?;
    Ok(())
}
