//! The Docker Engine as a Runtime.
