//! The embedded container runtime.
mod oci;
