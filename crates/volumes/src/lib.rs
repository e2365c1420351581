//! Volume plugins, the atomic writer, and what is mounted against what should be.
