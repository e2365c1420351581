//! The messages of the CRI v1 wire format, and nothing that could send them.
