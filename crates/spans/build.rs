//! Generates the messages and the service of OTLP from `proto/`, without a protoc on the machine.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto/trace_service.proto");
    let descriptors = protox::compile(["trace_service.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
