//! Garbage collection of unused images: when the disk fills up, or when they are too old.
//!
//! Ages are counted on the monotonic clock from when the agent first saw an image. So a clock that jumps deletes
//! nothing, and an agent that has not run for long takes nothing for old.

mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub use usage::{gc_images, images_in_use};

use crate::time::Mono;

/// When images are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageGcPolicy {
    /// From this much of the disk in use, in percent, space is made.
    pub high_percent: u64,
    /// It is made until this much is in use.
    pub low_percent: u64,
    /// Younger images stay: they may be about to be used.
    pub min_age: Duration,
    /// Images unused for longer go even when there is space; none for never.
    pub max_age: Option<Duration>,
}

impl Default for ImageGcPolicy {
    fn default() -> Self {
        let min_age = Duration::from_secs(120);
        Self { high_percent: 85, low_percent: 80, min_age, max_age: None }
    }
}

/// An image as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GcImage {
    /// The id that the runtime gave the image.
    pub id: String,
    /// How many bytes it takes.
    pub bytes: u64,
    /// The runtime will not do without it.
    pub pinned: bool,
}

/// The disk the images are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageFsStats {
    /// The size of the file system of images, in bytes.
    pub capacity: u64,
    /// Its free bytes.
    pub available: u64,
}

/// A disk whose size is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid capacity 0 on image filesystem")]
pub struct InvalidCapacity;

/// There are not enough images that may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "Failed to garbage collect required amount of images. Attempted to free {wanted} bytes, but only found {freed} bytes eligible to free."
)]
pub struct NotEnoughImages {
    /// How many bytes were to be freed.
    pub wanted: u64,
    /// How many were freed.
    pub freed: u64,
}

/// What the agent remembers of images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageRecords {
    images: BTreeMap<String, ImageRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ImageRecord {
    bytes: u64,
    pinned: bool,
    in_use: bool,
    first_seen: Mono,
    last_used: Option<Mono>,
}

/// An image that may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedImage {
    /// The id that the runtime gave the image.
    pub id: String,
    /// How many bytes it takes.
    pub bytes: u64,
    /// Why it goes.
    pub why: ImageGcReason,
}

/// Why an unused image is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImageGcReason {
    /// It was unused for longer than images may be.
    Age,
    /// The disk is full.
    Space,
}

impl ImageGcReason {
    /// The value of the label `reason`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Space => "space",
        }
    }
}

/// Images to delete, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagesToDelete {
    /// The images to delete, in order.
    pub images: Vec<UnusedImage>,
    /// Further ones, in order, for those that cannot be deleted.
    pub spare: Vec<UnusedImage>,
    /// How many bytes were to be freed.
    pub wanted: u64,
    /// How many bytes these images take.
    pub freed: u64,
}

impl ImageRecords {
    /// Takes in what the runtime lists now and which of it containers use.
    pub fn detect_images(&mut self, images: &[GcImage], in_use: &BTreeSet<String>, now: Mono) {
        let mut before = std::mem::take(&mut self.images);
        for image in images {
            let old = before.remove(&image.id);
            let used = in_use.contains(&image.id);
            let known = ImageRecord {
                bytes: image.bytes,
                pinned: image.pinned,
                in_use: used,
                first_seen: old.as_ref().map_or(now, |old| old.first_seen),
                last_used: if used { Some(now) } else { old.and_then(|old| old.last_used) },
            };
            self.images.insert(image.id.clone(), known);
        }
    }

    /// What to delete: the unused that grew too old, then as many as bring the disk below the low mark.
    pub fn garbage(
        &self,
        policy: &ImageGcPolicy,
        disk: ImageFsStats,
        now: Mono,
    ) -> Result<ImagesToDelete, InvalidCapacity> {
        let mut garbage =
            ImagesToDelete { wanted: to_free(policy, disk)?, ..ImagesToDelete::default() };
        let too_old =
            |image: &ImageRecord| policy.max_age.is_some_and(|limit| image.unused_for(now) > limit);
        let deletable = self.deletable(policy, now).into_iter();
        let (old, rest): (Vec<_>, Vec<_>) = deletable.partition(|(_, image)| too_old(image));
        old.into_iter().for_each(|image| garbage.add(unused(image, ImageGcReason::Age)));
        for image in rest {
            let image = unused(image, ImageGcReason::Space);
            match garbage.freed < garbage.wanted {
                true => garbage.add(image),
                false => garbage.spare.push(image),
            }
        }
        Ok(garbage)
    }

    /// Everything unused, for when the disk is about to evict pods.
    pub fn unused(&self, policy: &ImageGcPolicy, now: Mono) -> Vec<String> {
        self.deletable(policy, now).into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// Least recently used first, never used before that, the longest seen first among equals.
    fn deletable(&self, policy: &ImageGcPolicy, now: Mono) -> Vec<(&String, &ImageRecord)> {
        let may_go = |image: &ImageRecord| {
            !image.in_use && !image.pinned && now.since(image.first_seen) >= policy.min_age
        };
        let mut images: Vec<_> = self.images.iter().filter(|(_, image)| may_go(image)).collect();
        images.sort_by_key(|(_, image)| (image.last_used, image.first_seen));
        images
    }
}

impl ImageRecord {
    fn unused_for(&self, now: Mono) -> Duration {
        now.since(self.last_used.unwrap_or(self.first_seen))
    }
}

impl ImagesToDelete {
    fn add(&mut self, image: UnusedImage) {
        self.freed = self.freed.saturating_add(image.bytes);
        self.images.push(image);
    }
}

fn unused((id, image): (&String, &ImageRecord), why: ImageGcReason) -> UnusedImage {
    UnusedImage { id: id.clone(), bytes: image.bytes, why }
}

/// How many bytes must go so that the low mark is reached; none while the high mark is not.
fn to_free(policy: &ImageGcPolicy, disk: ImageFsStats) -> Result<u64, InvalidCapacity> {
    let (capacity, available) = (u128::from(disk.capacity), u128::from(disk.available));
    let used_percent =
        100 - (available.min(capacity) * 100).checked_div(capacity).ok_or(InvalidCapacity)?;
    if used_percent < u128::from(policy.high_percent) {
        return Ok(0);
    }
    let free_at_low = capacity * u128::from(100_u64.saturating_sub(policy.low_percent)) / 100;
    Ok(u64::try_from(free_at_low.saturating_sub(available)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
