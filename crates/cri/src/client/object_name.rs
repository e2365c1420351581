//! Names objects that have no id yet, for error messages.

use oarsman_cri_types::v1::{CreateContainerRequest, ImageSpec, PodSandboxConfig};

/// `namespace/name` of a pod.
pub(super) fn of_pod(config: Option<&PodSandboxConfig>) -> String {
    let metadata = config.and_then(|config| config.metadata.as_ref());
    metadata.map_or_else(String::new, |m| format!("{}/{}", m.namespace, m.name))
}

/// `namespace/name/container` of a container to be made.
pub(super) fn of_container(request: &CreateContainerRequest) -> String {
    let config = request.config.as_ref();
    let metadata = config.and_then(|config| config.metadata.as_ref());
    let name = metadata.map_or("", |metadata| metadata.name.as_str());
    format!("{}/{name}", of_pod(request.sandbox_config.as_ref()))
}

/// The reference of an image.
pub(super) fn of_image(spec: Option<&ImageSpec>) -> String {
    spec.map_or_else(String::new, |spec| spec.image.clone())
}
