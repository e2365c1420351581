//! Scenarios on real runtimes.
