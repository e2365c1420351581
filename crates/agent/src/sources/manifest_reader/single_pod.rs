//! A file of static pods: one manifest, one pod.

use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;
use oarsman_core::static_pod::ManifestOrigin;

use super::{
    ManifestReader, ParsedManifest, ParsedPod, catch_panic, parse_messages, place, static_pod,
};
use crate::manifest::one_document;
use crate::sources::message::ManifestProblem;

/// Reads static pods of this node.
#[derive(Clone, Debug)]
pub(in crate::sources) struct SinglePodReader {
    pub(in crate::sources) node: String,
}

impl ManifestReader for SinglePodReader {
    type Item = Pod;

    const REQUIRED: bool = false;

    fn is_manifest(_: &Path) -> bool {
        true
    }

    fn read(
        &self,
        bytes: &[u8],
        origin: &ManifestOrigin,
        _: &[Pod],
    ) -> Result<ParsedManifest<Pod>, Vec<ManifestProblem>> {
        let read = catch_panic(|| {
            let manifest = one_document(bytes).map_err(|error| error.to_string())?;
            static_pod(manifest, origin, &self.node)
        });
        let place = place(origin);
        let ParsedPod { pod, unknown_fields } =
            read.map_err(|why| vec![ManifestProblem::new(place, why)])?;
        let messages = parse_messages(place, "pod", &Self::name(&pod), &unknown_fields);
        Ok(ParsedManifest { items: vec![pod], messages })
    }

    fn name(pod: &Pod) -> String {
        format!("pod {}", pod.full_name())
    }

    fn pod(pod: &Pod) -> Option<&Pod> {
        Some(pod)
    }
}
