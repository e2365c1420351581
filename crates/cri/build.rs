//! Generates the gRPC services from the proto files of `oarsman-cri-types`, which has the messages.

use std::error::Error;

/// Where the sibling crate keeps the wire format.
const PROTO: &str = "../cri-types/proto";

fn main() -> Result<(), Box<dyn Error>> {
    let services = ["runtime/v1/runtime_service.proto", "runtime/v1/image_service.proto"];
    let descriptors = protox::compile(services, [PROTO])?;
    // By file: the time stamp of a directory is another one in every clone.
    for file in &descriptors.file {
        println!("cargo::rerun-if-changed={PROTO}/{}", file.name());
    }
    tonic_prost_build::configure()
        .extern_path(".runtime.v1", "::oarsman_cri_types::v1")
        // Calls that the Runtime trait lacks answer Unimplemented.
        .generate_default_stubs(true)
        .compile_fds(descriptors)?;
    Ok(())
}
