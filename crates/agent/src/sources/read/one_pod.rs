//! A file of static pods: one manifest, one pod.

use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::pod::PodExt;
use oarsman_core::static_pod::Origin;

use super::{Readable, Reading, Sheet, place, static_pod, understood, unharmed};
use crate::manifest::one_document;
use crate::sources::line::Remark;

/// Reads static pods of this node.
#[derive(Clone, Debug)]
pub(in crate::sources) struct OnePod {
    pub(in crate::sources) node: String,
}

impl Reading for OnePod {
    type Item = Pod;

    const MUST_BE_THERE: bool = false;

    fn is_manifest(_: &Path) -> bool {
        true
    }

    fn read(&self, bytes: &[u8], origin: &Origin, _: &[Pod]) -> Result<Sheet<Pod>, Vec<Remark>> {
        let read = unharmed(|| {
            let manifest = one_document(bytes).map_err(|error| error.to_string())?;
            static_pod(manifest, origin, &self.node)
        });
        let place = place(origin);
        let Readable { pod, unknown_fields } = read.map_err(|why| vec![Remark::new(place, why)])?;
        let lines = understood(place, "pod", &Self::name(&pod), &unknown_fields);
        Ok(Sheet { items: vec![pod], lines })
    }

    fn name(pod: &Pod) -> String {
        format!("pod {}", pod.full_name())
    }

    fn pod(pod: &Pod) -> Option<&Pod> {
        Some(pod)
    }
}
