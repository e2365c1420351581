//! Variables that tell a container about its own pod.

use k8s_openapi::api::core::v1::Pod;

use super::EnvContext;
use crate::cri_spec::error::{ConfigError, VariableError};
use crate::pod::PodExt;

/// The value of a field of the pod, as `valueFrom.fieldRef` names it.
pub(super) fn value(source: &EnvContext<'_>, path: &str) -> Result<String, ConfigError> {
    let pod = source.pod;
    let of_spec = |field: Option<&String>| field.cloned().unwrap_or_default();
    let spec = pod.spec();
    let node = source.node.facts;
    let value = match path {
        "metadata.name" => pod.full_name().name,
        "metadata.namespace" => pod.full_name().namespace,
        "metadata.uid" => pod.uid().to_string(),
        "spec.nodeName" | "spec.host" => of_spec(spec.and_then(|spec| spec.node_name.as_ref())),
        "spec.serviceAccountName" => {
            of_spec(spec.and_then(|spec| spec.service_account_name.as_ref()))
        }
        "status.hostIP" => first(node.primary_first(&node.host_ips)),
        "status.hostIPs" => node.primary_first(&node.host_ips).join(","),
        "status.podIP" => first(node.primary_first(source.ips)),
        "status.podIPs" => node.primary_first(source.ips).join(","),
        path => return subscript(pod, path),
    };
    Ok(value)
}

fn first(texts: Vec<String>) -> String {
    texts.into_iter().next().unwrap_or_default()
}

/// `metadata.labels['key']` or `metadata.annotations['key']`: empty when the pod has none of that name.
pub(in crate::cri_spec) fn subscript(pod: &Pod, path: &str) -> Result<String, ConfigError> {
    let unknown = || VariableError::Field(path.to_owned());
    let (map, key) =
        path.strip_suffix("']").and_then(|path| path.split_once("['")).ok_or_else(unknown)?;
    let metadata = &pod.metadata;
    let map = match map {
        "metadata.labels" => metadata.labels.as_ref(),
        "metadata.annotations" => metadata.annotations.as_ref(),
        _ => return Err(unknown().into()),
    };
    Ok(map.and_then(|map| map.get(key)).cloned().unwrap_or_default())
}
