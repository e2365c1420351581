//! The embedded container runtime, a Runtime inside the binary.
