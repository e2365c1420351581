//! Checks the direction of dependencies: a crate may use crates of a lower layer, never of its own or a higher one.

use cargo_metadata::{DependencyKind, Metadata, Package};

/// The layers of ARCHITECTURE.md, lowest first. Planned crates (runtime, dockershim) have theirs already.
const LAYERS: &[&[&str]] = &[
    &["oarsman-seam-macros"],
    &["oarsman-cri-types", "oarsman-manifest", "oarsman-seam"],
    &["oarsman-core"],
    &["oarsman-clock", "oarsman-sync"],
    &["oarsman-spans"],
    &[
        "oarsman-demo-image",
        "oarsman-kubelet-config",
        "oarsman-cri",
        "oarsman-streaming",
        "oarsman-host",
        "oarsman-cluster",
    ],
    &[
        "oarsman-volumes",
        "oarsman-net",
        "oarsman-pod-network",
        "oarsman-cni",
        "oarsman-images",
        "oarsman-image-store",
        "oarsman-state",
        "oarsman-shim",
    ],
    &["oarsman-registry"],
    &["oarsman-runtime", "oarsman-dockershim"],
    &["oarsman-agent", "oarsman-server"],
    &["oarsman"],
];

/// Complaints about edges that do not go down.
pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let members: Vec<&Package> = metadata.workspace_packages();
    let is_member = |name: &str| members.iter().any(|p| p.name.as_str() == name);
    let mut complaints = Vec::new();
    for package in &members {
        for dependency in package.dependencies.iter().filter(|d| is_member(&d.name)) {
            // Dev-dependencies may be of any layer.
            if dependency.kind == DependencyKind::Development {
                continue;
            }
            complaints.extend(complaint(&package.name, &dependency.name));
        }
        if is_product(package) && layer(&package.name).is_none() {
            complaints.push(format!(
                "{}: has no layer; give it one in xtask/src/tidy/layers.rs and ARCHITECTURE.md",
                package.name
            ));
        }
    }
    complaints
}

/// What is wrong with the edge from one crate of ours to another, if anything.
pub(super) fn complaint(from: &str, to: &str) -> Option<String> {
    let from_layer = layer(from)?; // test crates and xtask stand above everything
    match layer(to) {
        Some(to_layer) if to_layer < from_layer => None,
        Some(_) => Some(format!(
            "{from}: may not depend on {to}, which is not below it; move what both need further down"
        )),
        None => Some(format!(
            "{from}: may not depend on {to}, which is for tests; make it a dev-dependency"
        )),
    }
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn is_product(package: &Package) -> bool {
    package.manifest_path.components().any(|c| c.as_str() == "crates")
}
