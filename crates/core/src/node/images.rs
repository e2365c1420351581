//! The images that a node has, as its status names them: schedulers like nodes that need not pull.

use k8s_openapi::api::core::v1::ContainerImage;
use oarsman_cri_types::v1::Image;

/// So many names of an image are told.
const NAMES: usize = 5;

/// The largest images first, at most so many.
pub fn node_images(mut images: Vec<Image>, most: Option<usize>) -> Vec<ContainerImage> {
    // By name where sizes are equal, so that a list that did not change looks like one.
    images.sort_by(|one, other| other.size.cmp(&one.size).then_with(|| one.id.cmp(&other.id)));
    images.truncate(most.unwrap_or(usize::MAX));
    images.into_iter().map(container_image).collect()
}

fn container_image(image: Image) -> ContainerImage {
    let names: Vec<String> =
        image.repo_digests.into_iter().chain(image.repo_tags).take(NAMES).collect();
    ContainerImage {
        names: Some(names).filter(|names| !names.is_empty()),
        size_bytes: i64::try_from(image.size).ok(),
    }
}
