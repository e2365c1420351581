//! The Runtime seam, the client of a CRI runtime behind a unix socket, and the server of any Runtime.
