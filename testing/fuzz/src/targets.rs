//! The targets, one file each.

pub(crate) mod certificates;
pub(crate) mod cgroup_files;
pub(crate) mod cni_networks;
pub(crate) mod cni_results;
pub(crate) mod container_output;
pub(crate) mod credentials;
pub(crate) mod cri_answers;
pub(crate) mod image_documents;
pub(crate) mod image_layers;
pub(crate) mod image_references;
pub(crate) mod kubeconfig;
pub(crate) mod kubelet_configuration;
pub(crate) mod log_lines;
pub(crate) mod manifests;
pub(crate) mod mountinfo;
pub(crate) mod quantities;
pub(crate) mod registry_answers;
pub(crate) mod registry_hosts;
pub(crate) mod shim_messages;
pub(crate) mod spdy_frames;
pub(crate) mod streaming_queries;
pub(crate) mod termination_messages;
pub(crate) mod websocket_frames;

/// Texts as seeds.
fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
