//! Images on the node and in registries, and pulls.

use std::collections::BTreeMap;
use std::time::Duration;

use oarsman_cri::{CriError, ErrorCode, Result};
use oarsman_cri_types::v1::{
    AuthConfig, FilesystemIdentifier, FilesystemUsage, Image, ImageFsInfoResponse, Int64Value,
    PullImageRequest, UInt64Value,
};

use super::FakeRuntime;
use super::state::{FakeRuntimeState, hexadecimal};
use crate::fnv::Fnv;
use crate::trace::TraceEntry;

const CALL: &str = "PullImage";

/// The definition of an image. Its entrypoint is the script program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSource {
    /// Its reference, with a tag.
    pub name: String,
    /// The user it runs as, if it has one.
    pub user: Option<i64>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// Its working directory; empty for the root.
    pub working_dir: String,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the runtime says that it must not be removed.
    pub pinned: bool,
}

/// The credentials that an image needs, and how long its pull takes.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageAccess {
    /// Credentials that are needed; none for a public image.
    pub credentials: Option<AuthConfig>,
    /// How long a pull takes.
    pub time: Duration,
}

/// All images.
#[derive(Default)]
pub(super) struct ImageStore {
    on_node: BTreeMap<String, StoredImage>,
    registry: BTreeMap<String, (ImageSource, ImageAccess)>,
    /// The requests of all pulls.
    pub(super) requests: Vec<PullImageRequest>,
}

/// An image with its id and digest.
#[derive(Debug, Clone)]
pub(super) struct StoredImage {
    pub(super) source: ImageSource,
    pub(super) id: String,
    /// Its reference by digest.
    pub(super) digest: String,
}

impl ImageSource {
    /// An image of that name, running as root, of a mebibyte.
    pub fn script(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            user: None,
            environment: BTreeMap::new(),
            working_dir: String::new(),
            size: 1 << 20,
            pinned: false,
        }
    }
}

impl ImageAccess {
    /// A public image whose pull takes no time.
    pub const PUBLIC: Self = Self { credentials: None, time: Duration::ZERO };

    fn allows(&self, auth: Option<&AuthConfig>) -> bool {
        let pair = |auth: &AuthConfig| (auth.username.clone(), auth.password.clone());
        self.credentials.is_none() || self.credentials.as_ref().map(pair) == auth.map(pair)
    }
}

impl ImageStore {
    pub(super) fn preload(&mut self, source: ImageSource) -> String {
        let stored = StoredImage::new(source);
        let id = stored.id.clone();
        self.on_node.insert(id.clone(), stored);
        id
    }

    pub(super) fn publish(&mut self, source: ImageSource, access: ImageAccess) {
        self.registry.insert(source.name.clone(), (source, access));
    }

    /// The image on the node with that id, name or digest.
    pub(super) fn find(&self, name: &str) -> Option<&StoredImage> {
        self.on_node
            .values()
            .find(|image| image.id == name || image.source.name == name || image.digest == name)
    }

    pub(super) fn list(&self) -> Vec<Image> {
        self.on_node.values().map(StoredImage::described).collect()
    }

    /// The image that a pull with these credentials gives, and how long the pull takes: no time for an image that is on the node already, though
    /// a registry that has it still needs its credentials.
    fn offer(&self, name: &str, auth: Option<&AuthConfig>) -> Result<(ImageSource, Duration)> {
        let there = self.find(name).map(|image| image.source.clone());
        match (there, self.registry.get(name)) {
            (_, Some((_, access))) if !access.allows(auth) => {
                let message = "pull access denied: authorization failed";
                Err(CriError::new(CALL, ErrorCode::Unknown, message).on(name))
            }
            (Some(source), _) => Ok((source, Duration::ZERO)),
            (None, Some((source, access))) => Ok((source.clone(), access.time)),
            (None, None) => Err(CriError::not_found(CALL, name)),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.on_node.values().map(|image| image.source.size).sum()
    }
}

impl StoredImage {
    fn new(source: ImageSource) -> Self {
        let mut hash = Fnv::default();
        hash.update(source.name.as_bytes());
        let id = format!("sha256:{}", hexadecimal(hash.value()));
        let repository =
            source.name.rsplit_once(':').map_or(source.name.as_str(), |(name, _)| name);
        let digest = format!("{repository}@sha256:{}", hexadecimal(!hash.value()));
        Self { source, id, digest }
    }

    pub(super) fn described(&self) -> Image {
        Image {
            id: self.id.clone(),
            repo_tags: vec![self.source.name.clone()],
            repo_digests: vec![self.digest.clone()],
            size: self.source.size,
            uid: self.source.user.map(|value| Int64Value { value }),
            pinned: self.source.pinned,
            ..Image::default()
        }
    }
}

impl FakeRuntime {
    /// Waits for the registry, then adds the image to the node.
    pub(super) async fn pull(&self, request: PullImageRequest) -> Result<String> {
        let name = request.image.clone().unwrap_or_default().image;
        let (source, time) = {
            let mut state = self.serve(CALL)?;
            state.images.requests.push(request.clone());
            state.images.offer(&name, request.auth.as_ref())?
        };
        tokio::time::sleep(time).await;
        Ok(self.serve(CALL)?.images.preload(source))
    }
}

impl FakeRuntimeState {
    /// Removes an image, also one in use, as real runtimes do.
    pub(super) fn remove_image(&mut self, name: &str) {
        let Some(image) = self.images.find(name).cloned() else { return };
        let user = self.containers.values().find(|container| container.needs_image(&image.id));
        let user = user.map(|container| container.id.clone());
        self.images.on_node.remove(&image.id);
        let StoredImage { source: ImageSource { name, pinned, .. }, .. } = image;
        self.trace.append(TraceEntry::ImageRemoved { image: name, is_pinned: pinned, user });
    }

    pub(super) fn image_fs_info(&self) -> ImageFsInfoResponse {
        let images = FilesystemUsage {
            timestamp: self.clock.stamp(),
            fs_id: Some(FilesystemIdentifier { mountpoint: "/run/world/images".to_owned() }),
            used_bytes: Some(UInt64Value { value: self.images.size() }),
            inodes_used: None,
        };
        ImageFsInfoResponse { image_filesystems: vec![images], container_filesystems: Vec::new() }
    }
}
