//! The image garbage collector: every five minutes it removes unused images while the disk is full or when they are old, and
//! brings the records of pulls in line with the images there are. `core::gc::images` chooses.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use oarsman_core::gc::images::{
    ImageFsStats, ImageGcPolicy, ImageRecords, ImagesToDelete, InvalidCapacity, NotEnoughImages,
    UnusedImage, gc_images,
};
use oarsman_core::node::events;
use oarsman_cri::CriError;
use oarsman_cri_types::v1::{Image, ImageSpec};
use oarsman_host::host_info::HostInfoError;
use oarsman_sync::TaskName;
use tokio::time::sleep;

use crate::node::AgentContext;

/// The time between two collections.
const PERIOD: Duration = Duration::from_secs(300);

/// Why a collection failed.
#[derive(Debug, thiserror::Error)]
enum ImageGcError {
    #[error("failed to get image stats: {0}")]
    Runtime(#[from] CriError),
    #[error("failed to get image stats: {0}")]
    FileSystem(#[from] HostInfoError),
    #[error("failed to get image stats: the runtime names no image file system")]
    NoFileSystem,
    #[error(transparent)]
    Capacity(#[from] InvalidCapacity),
    #[error(transparent)]
    NotEnough(#[from] NotEnoughImages),
    #[error(
        "wanted to free {wanted} bytes, but freed {freed} bytes space with errors in image deletion: {errors}"
    )]
    Deletion { wanted: u64, freed: u64, errors: String },
}

pub(crate) async fn run(node: Arc<AgentContext>) {
    let mut collector = ImageCollector { node: &node, records: ImageRecords::default() };
    let mut has_failed = false;
    loop {
        match collector.collect().await {
            Ok(()) => has_failed = false,
            Err(error) => {
                // The first time the runtime may not have counted yet.
                tracing::warn!(task = %TaskName::ImageGc, %error, "image garbage collection failed, is tried again in five minutes");
                if has_failed {
                    node.node_events.send([events::image_gc_failed(&error)]);
                }
                has_failed = true;
            }
        }
        sleep(PERIOD).await;
    }
}

struct ImageCollector<'n> {
    node: &'n AgentContext,
    records: ImageRecords,
}

impl ImageCollector<'_> {
    async fn collect(&mut self) -> Result<(), ImageGcError> {
        let policy = self.node.config.images.gc;
        let disk = match policy {
            Some(_) => Some(self.disk().await),
            None => None,
        };
        let listed = self.node.seams.clock.wall();
        let images = self.node.seams.runtime.list_images(None).await?;
        self.tidy_pull_records(&images, listed).await;
        match policy.zip(disk) {
            Some((policy, disk)) => self.remove_unused(&policy, disk?, &images).await,
            None => Ok(()),
        }
    }

    /// The file system of images.
    async fn disk(&self) -> Result<ImageFsStats, ImageGcError> {
        let answer = self.node.seams.runtime.image_fs_info().await?;
        let place = answer.image_filesystems.first().and_then(|system| system.fs_id.as_ref());
        let place = place.ok_or(ImageGcError::NoFileSystem)?;
        Ok(self.node.seams.host_info.file_system(&place.mountpoint).await?)
    }

    async fn remove_unused(
        &mut self,
        policy: &ImageGcPolicy,
        disk: ImageFsStats,
        images: &[Image],
    ) -> Result<(), ImageGcError> {
        self.node.image_uses.begin_list();
        let containers = self.node.seams.runtime.list_containers(None).await?;
        let pods = self.node.active_pods.all();
        let in_use = self.node.decisions.images_in_use(images, &containers, &pods);
        let now = self.node.seams.clock.mono();
        self.records.detect_images(&gc_images(images), &in_use, now);
        let garbage = self.records.garbage(policy, disk, now).inspect_err(|error| {
            self.node.node_events.send([events::invalid_disk_capacity(error)]);
        })?;
        self.delete(&garbage).await
    }

    /// Deletes images until enough is freed; one that cannot be deleted is replaced by the next in order.
    async fn delete(&self, garbage: &ImagesToDelete) -> Result<(), ImageGcError> {
        let (mut freed, mut errors) = (0_u64, Vec::new());
        for image in &garbage.images {
            freed = freed.saturating_add(self.remove(image, &mut errors).await);
        }
        for image in &garbage.spare {
            if freed >= garbage.wanted {
                break;
            }
            freed = freed.saturating_add(self.remove(image, &mut errors).await);
        }
        let wanted = garbage.wanted;
        if !errors.is_empty() {
            return Err(ImageGcError::Deletion { wanted, freed, errors: errors.join(", ") });
        }
        if freed < wanted {
            let error = NotEnoughImages { wanted, freed };
            self.node.node_events.send([events::free_disk_space_failed(error)]);
            return Err(error.into());
        }
        Ok(())
    }

    /// How many bytes that freed; an image that a pod is about to use stays.
    async fn remove(&self, image: &UnusedImage, errors: &mut Vec<String>) -> u64 {
        let Some(_removal) = self.node.image_uses.begin_removal(&image.id) else { return 0 };
        let spec = ImageSpec { image: image.id.clone(), ..ImageSpec::default() };
        match self.node.seams.runtime.remove_image(spec).await {
            Ok(()) => {
                let detail = format!("{} bytes", image.bytes);
                tracing::info!(image = image.id, detail, "unused image removed");
                self.node.metrics.removed_images.increment(image.why.label());
                image.bytes
            }
            Err(error) => {
                errors.push(error.to_string());
                0
            }
        }
    }

    /// Records of images that are gone go, and those of pulls that ended unseen are made.
    async fn tidy_pull_records(&self, images: &[Image], listed: Timestamp) {
        let manager = &self.node.pull_manager;
        if manager.verification().is_some() {
            manager.settle_intents(images).await;
            manager.prune_records(images, listed).await;
        }
    }
}
