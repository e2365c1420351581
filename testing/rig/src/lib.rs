//! Real parts for tests: containerd in namespaces of its own, local images, a registry, a leak check.
