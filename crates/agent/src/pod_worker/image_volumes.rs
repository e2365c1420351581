//! Volumes that are images: pulled as the images of containers are, and mounted by the runtime.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Volume};
use oarsman_core::cri_spec::ImageVolume;
use oarsman_core::pod::PodExt;

use super::image::{ImageRequest, PresentImage};
use super::starter::NotStarted;

/// The images that one container is made with.
#[derive(Debug)]
pub(super) struct ContainerImages {
    /// Its own.
    pub(super) own: PresentImage,
    /// Those that it mounts, by volume.
    pub(super) volumes: BTreeMap<String, ImageVolume>,
}

impl ImageRequest<'_> {
    /// Makes sure that the container's image and those that it mounts are there. Policy, credentials, back-off, reasons and events of the
    /// latter are those of containers.
    pub(super) async fn ensure_images_exist(&self) -> Result<ContainerImages, NotStarted> {
        let own = self.ensure_image_exists().await?;
        let mut volumes = BTreeMap::new();
        for (volume, as_container) in self.mounted_images() {
            let request = ImageRequest { spec: &as_container, ..*self };
            let id = request.ensure_image_exists().await?.id;
            let reference = as_container.image.unwrap_or_default();
            volumes.insert(volume, ImageVolume { id, reference });
        }
        Ok(ContainerImages { own, volumes })
    }

    /// The volumes that this container mounts and that are images, each as a container of that image would be.
    fn mounted_images(&self) -> Vec<(String, Container)> {
        let mounts = self.spec.volume_mounts.iter().flatten();
        let mounted: BTreeSet<_> = mounts.map(|mount| mount.name.as_str()).collect();
        let as_container = |volume: &Volume| {
            let source =
                volume.image.as_ref().filter(|_| mounted.contains(volume.name.as_str()))?;
            let container = Container {
                name: self.spec.name.clone(),
                image: source.reference.clone(),
                image_pull_policy: source.pull_policy.clone(),
                ..Container::default()
            };
            Some((volume.name.clone(), container))
        };
        let volumes = self.pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        volumes.iter().filter_map(as_container).collect()
    }
}
