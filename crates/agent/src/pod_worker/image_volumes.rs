//! Volumes that are images: pulled as the images of containers are, and mounted by the runtime.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, ImageVolumeSource, Pod};
use oarsman_core::cri_spec::ImageVolume;
use oarsman_core::image::policy::PullPolicy;
use oarsman_core::pod::PodExt;

use super::image::{ImageRequest, PresentImage};
use super::starter::NotStarted;

/// The images that one container is made with. None of them is removed before this is dropped.
#[derive(Debug)]
pub(super) struct ContainerImages<'a> {
    /// Its own.
    pub(super) own: PresentImage<'a>,
    /// Those that it mounts, by volume.
    pub(super) volumes: BTreeMap<String, ImageVolume>,
    _mounted: Vec<PresentImage<'a>>,
}

impl<'a> ImageRequest<'a> {
    /// Makes sure that the container's image and those that it mounts are there. Policy, credentials, back-off, reasons and events of the
    /// latter are those of containers.
    pub(super) async fn ensure_images_exist(
        &self,
        spec: &Container,
    ) -> Result<ContainerImages<'a>, NotStarted> {
        let own = self.ensure_image_exists().await?;
        let (mut volumes, mut mounted) = (BTreeMap::new(), Vec::new());
        for (volume, source) in mounted_images(self.pod, spec) {
            let image = source.reference.as_deref().unwrap_or_default();
            let policy = PullPolicy::named(source.pull_policy.as_deref());
            let counts = &self.context.node.metrics.images.volumes;
            counts.requested.increment();
            let present = ImageRequest { image, policy, ..*self }.ensure_image_exists().await;
            let present = present.inspect_err(|_| counts.failed.increment())?;
            let (id, reference) = (present.id.clone(), image.to_owned());
            volumes.insert(volume.to_owned(), ImageVolume { id, reference });
            mounted.push(present);
        }
        Ok(ContainerImages { own, volumes, _mounted: mounted })
    }
}

/// The volumes that a container mounts and that are images.
fn mounted_images<'a>(pod: &'a Pod, spec: &Container) -> Vec<(&'a str, &'a ImageVolumeSource)> {
    let mounts = spec.volume_mounts.iter().flatten();
    let mounted: BTreeSet<_> = mounts.map(|mount| mount.name.as_str()).collect();
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let mounted = volumes.iter().filter(|volume| mounted.contains(volume.name.as_str()));
    mounted.filter_map(|volume| Some((volume.name.as_str(), volume.image.as_ref()?))).collect()
}
