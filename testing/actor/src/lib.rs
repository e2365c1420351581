//! A container's program whose script the fake runtime and the real one both understand.
