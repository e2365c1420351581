//! Which images are in use, as the runtime lists images and containers.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use oarsman_cri_types::v1::{Container, Image};

use super::GcImage;
use crate::image_reference::full_name;

/// The images as the runtime lists them.
pub fn gc_images(images: &[Image]) -> Vec<GcImage> {
    let image =
        |image: &Image| GcImage { id: image.id.clone(), bytes: image.size, pinned: image.pinned };
    images.iter().map(image).collect()
}

/// The ids of images that containers use, also those that have ended, or that pods have as volumes.
pub fn images_in_use<'p>(
    images: &[Image],
    containers: &[Container],
    pods: impl IntoIterator<Item = &'p Pod>,
) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for container in containers {
        let named = container.image.as_ref().map(|image| &image.image);
        used.extend([&container.image_id, &container.image_ref].into_iter().chain(named).cloned());
    }
    used.extend(pods.into_iter().flat_map(volume_images).map(str::to_owned));
    let full: BTreeSet<String> = used.iter().map(|name| full_name(name)).collect();
    let is_used = |image: &&Image| {
        let mut names = image.repo_tags.iter().chain(&image.repo_digests);
        used.contains(&image.id) || names.any(|name| full.contains(&full_name(name)))
    };
    images.iter().filter(is_used).map(|image| image.id.clone()).collect()
}

fn volume_images(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| volume.image.as_ref()?.reference.as_deref())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ImageVolumeSource, PodSpec, Volume};
    use oarsman_cri_types::v1::ImageSpec;

    use super::*;

    fn image(id: &str, tag: &str) -> Image {
        let digest = format!("{}@sha256:{id}", tag.rsplit_once(':').unwrap().0);
        Image {
            id: id.to_owned(),
            repo_tags: vec![tag.to_owned()],
            repo_digests: vec![digest],
            ..Image::default()
        }
    }

    fn container(id: &str, image_ref: &str, name: &str) -> Container {
        Container {
            image_id: id.to_owned(),
            image_ref: image_ref.to_owned(),
            image: Some(ImageSpec { image: name.to_owned(), ..ImageSpec::default() }),
            ..Container::default()
        }
    }

    #[test]
    fn an_image_is_in_use_by_any_name_that_a_container_or_a_volume_has_for_it() {
        let images = [
            image("1", "r.io/by-id:1"),
            image("2", "r.io/by-ref:1"),
            image("3", "docker.io/library/by-name:latest"),
            image("4", "r.io/by-digest:1"),
            image("5", "r.io/volume:1"),
            image("6", "r.io/unused:1"),
        ];
        let containers = [
            container("1", "", ""),
            container("", "2", ""),
            container("", "", "by-name"),
            container("", "r.io/by-digest@sha256:4", ""),
        ];
        let source = ImageVolumeSource {
            reference: Some("r.io/volume:1".to_owned()),
            ..ImageVolumeSource::default()
        };
        let volumes = vec![Volume { image: Some(source), ..Volume::default() }];
        let spec = PodSpec { volumes: Some(volumes), ..PodSpec::default() };
        let pod = Pod { spec: Some(spec), ..Pod::default() };
        let used = images_in_use(&images, &containers, [&pod]);
        assert_eq!(used.into_iter().collect::<Vec<_>>(), ["1", "2", "3", "4", "5"]);
    }
}
