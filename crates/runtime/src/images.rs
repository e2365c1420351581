//! Images of this node as CRI describes them.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oarsman_cri_types::v1 as cri;
use oarsman_image_store::{ImportOptions, Platform, StoreError, StoredImage};
use oarsman_registry::{ImagePull, PullCounters, PullCredentials, pull_into};
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::time::Instant;

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

/// As whom a kubelet wants the registry to be asked.
pub fn pull_credentials(auth: cri::AuthConfig) -> PullCredentials {
    if !auth.identity_token.is_empty() {
        return PullCredentials::IdentityToken(auth.identity_token);
    }
    if !auth.registry_token.is_empty() {
        return PullCredentials::RegistryToken(auth.registry_token);
    }
    if !auth.username.is_empty() {
        let (username, password) = (auth.username, auth.password);
        return PullCredentials::Password { username, password };
    }
    let decoded = STANDARD.decode(auth.auth.trim_end_matches('\0')).unwrap_or_default();
    let text = String::from_utf8(decoded).unwrap_or_default();
    match text.split_once(':') {
        Some((username, password)) => PullCredentials::Password {
            username: username.to_owned(),
            password: password.trim_end_matches('\0').to_owned(),
        },
        None => PullCredentials::Anonymous,
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

    /// Pulls an image from its registry, or from this program, and gives its id. What breaks off is kept for the next pull.
    pub(crate) async fn pull_image(
        self: &Arc<Self>,
        request: cri::PullImageRequest,
    ) -> Outcome<String> {
        let image = request.image.unwrap_or_default().image;
        let built_in = self.settings.built_in_images.iter().find(|known| known.name == image);
        if let Some(built_in) = built_in.copied() {
            return self.on_images("change", move |inner| inner.import_built_in(built_in)).await;
        }
        let credentials = pull_credentials(request.auth.unwrap_or_default());
        let pull = ImagePull { image, credentials, platform: Platform::host() };
        let (began, counters) = (Instant::now(), Arc::<PullCounters>::default());
        let pulled = pull_into(&self.images, &pull, &self.registries, &counters);
        let pulled = pulled.await.map_err(Box::new)?;
        let (bytes, time) = (counters.total.load(Ordering::Relaxed), began.elapsed());
        let detail = format!("{bytes} bytes in {:.1} s", time.as_secs_f32());
        tracing::info!(image = pull.image, detail, "image pulled");
        Ok(pulled.id.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn auth() -> cri::AuthConfig {
        cri::AuthConfig::default()
    }

    #[test]
    fn credentials_come_in_any_form_of_docker() {
        let password = || PullCredentials::Password {
            username: "aladdin".to_owned(),
            password: "open:sesame".to_owned(),
        };
        let (username, word) = ("aladdin".to_owned(), "open:sesame".to_owned());
        let encoded = STANDARD.encode("aladdin:open:sesame");
        let token = || "token".to_owned();
        let rows = [
            (auth(), PullCredentials::Anonymous),
            (cri::AuthConfig { username, password: word, ..auth() }, password()),
            (cri::AuthConfig { auth: encoded, ..auth() }, password()),
            (
                cri::AuthConfig { auth: "no base64".to_owned(), ..auth() },
                PullCredentials::Anonymous,
            ),
            (
                cri::AuthConfig { identity_token: token(), ..auth() },
                PullCredentials::IdentityToken(token()),
            ),
            (
                cri::AuthConfig { registry_token: token(), ..auth() },
                PullCredentials::RegistryToken(token()),
            ),
        ];
        for (given, wanted) in rows {
            assert!(pull_credentials(given) == wanted);
        }
    }
}
