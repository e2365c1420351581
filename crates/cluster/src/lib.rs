//! The Cluster seam and the API server behind it.
