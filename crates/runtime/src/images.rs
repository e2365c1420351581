//! Images of this node as CRI describes them.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;

use oarsman_cri_types::v1 as cri;
use oarsman_image_store::{ImportOptions, StoreError, StoredImage};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{EmbeddedRuntimeError, Outcome, failed};
use crate::inner::RuntimeInner;
use crate::oci::users::image_user;
use crate::settings::BuiltInImage;

fn shown(image: StoredImage) -> cri::Image {
    let (uid, username) = image_user(&image.config.user);
    cri::Image {
        id: image.id.to_string(),
        repo_tags: image.tags,
        repo_digests: image.digests,
        size: image.size,
        uid: uid.map(|value| cri::Int64Value { value }),
        username,
        spec: None,
        pinned: false,
    }
}

impl RuntimeInner {
    pub(crate) async fn list_images(
        self: &Arc<Self>,
        filter: Option<cri::ImageFilter>,
    ) -> Outcome<Vec<cri::Image>> {
        let wanted = filter.and_then(|filter| filter.image).map(|image| image.image);
        if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) {
            return Ok(self.image_status(wanted).await?.into_iter().collect());
        }
        let all = self.on_images("list", |inner| Ok(inner.images.images()?)).await?;
        Ok(all.into_iter().map(shown).collect())
    }

    /// None when the node does not have it.
    pub(crate) async fn image_status(
        self: &Arc<Self>,
        wanted: String,
    ) -> Outcome<Option<cri::Image>> {
        let found = self.on_images("list", move |inner| match inner.images.image(&wanted) {
            Err(StoreError::NoImage { .. }) => Ok(None),
            other => Ok(Some(other?)),
        });
        Ok(found.await?.map(shown))
    }

    /// An image that is here is its id; one of this program is imported, and another one cannot be had yet.
    pub(crate) async fn pull_image(self: &Arc<Self>, image: String) -> Outcome<String> {
        let built_in = self.settings.built_in_images.iter().find(|known| known.name == image);
        if let Some(built_in) = built_in.copied() {
            return self.on_images("change", move |inner| inner.import_built_in(built_in)).await;
        }
        match self.image_status(image.clone()).await? {
            Some(found) => Ok(found.id),
            None => Err(EmbeddedRuntimeError::NoRegistry { image }),
        }
    }

    /// Also when it is here: this program may be newer.
    fn import_built_in(&self, image: BuiltInImage) -> Outcome<String> {
        let source = Path::new(image.name);
        let archive = (image.archive)().map_err(failed("make the image", source))?;
        let file = memfd_create(c"image", MemfdFlags::CLOEXEC).map(File::from);
        let mut file = file.map_err(failed("make a file for", source))?;
        let written = file.write_all(&archive).and_then(|()| file.rewind());
        written.map_err(failed("write the image", source))?;
        let options = ImportOptions::default();
        let imported = self.images.import_archive(file, image.name, &options, &mut |_| {})?;
        let not_in = || EmbeddedRuntimeError::Invalid(format!("{} has no image", image.name));
        Ok(imported.first().ok_or_else(not_in)?.id.to_string())
    }

    /// Removes an image and what only it needs.
    pub(crate) async fn remove_image(self: &Arc<Self>, wanted: String) -> Outcome<()> {
        self.on_images("change", move |inner| {
            let image = match inner.images.image(&wanted) {
                Err(StoreError::NoImage { .. }) => return Ok(()),
                other => other?,
            };
            inner.images.remove_image(&image.id)?;
            inner.images.prune()?;
            Ok(())
        })
        .await
    }

    pub(crate) async fn image_fs_info(self: &Arc<Self>) -> Outcome<cri::ImageFsInfoResponse> {
        let used = self.on_images("usage", |inner| Ok(inner.images.usage()?)).await?;
        let usage = |used_bytes: u64, inodes_used: u64| cri::FilesystemUsage {
            timestamp: self.now(),
            fs_id: Some(cri::FilesystemIdentifier {
                mountpoint: used.directory.to_string_lossy().into_owned(),
            }),
            used_bytes: Some(cri::UInt64Value { value: used_bytes }),
            inodes_used: Some(cri::UInt64Value { value: inodes_used }),
        };
        Ok(cri::ImageFsInfoResponse {
            image_filesystems: vec![usage(used.images.bytes, used.images.inodes)],
            // Writable layers are on the same file system; each container's stats have its own.
            container_filesystems: vec![usage(used.images.bytes, used.images.inodes)],
        })
    }
}
