//! Real components for tests: containerd in namespaces of its own, local images, a registry, a control plane, a leak check.
//!
//! A test binary without the standard harness passes its tests to [`namespace::run`]. That builds the components that are not in the cache yet,
//! then runs the tests in mount, network and pid namespaces of their own, in which a [`Rig`] is a containerd that no other process can see, a
//! [`Registry`] serves [`images`] on loopback, a [`ControlPlane`] is a cluster to join, and a [`leaks::Snapshot`] shows what a test has left
//! behind.

mod cargo;
mod clock;
pub mod control_plane;
pub mod images;
mod kubelet;
pub mod leaks;
mod manifests;
pub mod namespace;
pub mod parts;
mod process;
mod registry;
mod rig;
mod run;
mod signals;

pub use cargo::{cargo, without_package};
pub use clock::wait_until;
pub use control_plane::{ControlPlane, Kubectl, MetricsServer};
pub use kubelet::{Implementation, Kubelet, KubeletOptions};
pub use manifests::Manifests;
pub use registry::{Registry, RegistryCredentials, RepositoryBehaviour, RequestCounts};
pub use rig::{ContainerdFlavour, Rig, RigOptions};
