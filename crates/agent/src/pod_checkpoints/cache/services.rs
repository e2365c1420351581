//! The services that pods of this node are told of: those of each namespace that has a pod here, and the API server's own.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Service;

/// The API server's own service, of which every pod is told.
const API_SERVER: (&str, &str) = ("default", "kubernetes");

/// What is known once a pod of a namespace has found these: what it found replaces what was known of its namespace, and nothing else.
pub(super) fn merged(
    known: Option<&[Service]>,
    namespace: &str,
    found: &[Service],
) -> Vec<Service> {
    let is_replaced = |service: &&Service| is_told(service, namespace);
    let others = known.unwrap_or_default().iter().filter(|service| !is_replaced(service));
    let mut all: Vec<_> = others.chain(found).cloned().collect();
    // One order, so that the same services are the same page.
    all.sort_by(|a, b| name(a).cmp(&name(b)));
    all
}

/// Those that pods of these namespaces are told of.
pub(super) fn of_namespaces(known: &[Service], namespaces: &BTreeSet<String>) -> Vec<Service> {
    let is_used = |service: &&Service| namespaces.iter().any(|name| is_told(service, name));
    known.iter().filter(is_used).cloned().collect()
}

fn is_told(service: &Service, namespace: &str) -> bool {
    name(service).0 == namespace || name(service) == API_SERVER
}

fn name(service: &Service) -> (&str, &str) {
    let metadata = &service.metadata;
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}
