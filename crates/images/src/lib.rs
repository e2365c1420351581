//! Pulling, storing, unpacking and mounting images.
