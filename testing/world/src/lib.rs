//! The simulated world: a fake Runtime, Cluster and Disk, virtual time, seeded faults, invariants.
