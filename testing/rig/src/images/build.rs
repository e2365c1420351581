//! Builds layers, configurations and manifests in the form of the OCI image specification.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

#[cfg(test)]
mod tests;

/// Bytes and their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Their media type.
    pub media_type: &'static str,
    /// `sha256:` and 64 digits.
    pub digest: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Blob {
    fn new(media_type: &'static str, bytes: Vec<u8>) -> Self {
        let hash = Sha256::digest(&bytes);
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { media_type, digest: format!("sha256:{digits}"), bytes }
    }

    /// How a manifest or an index points at them.
    pub(super) fn descriptor(&self) -> Value {
        json!({ "mediaType": self.media_type, "digest": self.digest, "size": self.bytes.len() })
    }
}

/// The part of an image's configuration that a runtime runs it by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the fields are those of the OCI image specification")]
pub struct ImageConfig {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, Empty>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stop_signal: String,
}

/// `{}`, the value of each volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Empty {}

/// An image for this machine's architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciImage {
    /// The whole name with registry and tag.
    pub name: String,
    /// The manifest, whose digest names the image in a registry.
    pub manifest: Blob,
    /// The configuration, whose digest is the image's id on a node.
    pub config: Blob,
    /// The layers, lowest first.
    pub layers: Vec<Blob>,
}

impl OciImage {
    /// Builds an image. The same arguments give the same digests.
    ///
    /// # Errors
    /// When a layer cannot be packed.
    pub fn build(name: &str, layers: &[ImageLayer], config: &ImageConfig) -> Result<Self> {
        let layers: Vec<Blob> = layers.iter().map(ImageLayer::pack).collect::<Result<_>>()?;
        // Layers are not compressed, so that their digests do not depend on a compressor.
        let diff_ids: Vec<&str> = layers.iter().map(|layer| layer.digest.as_str()).collect();
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": config,
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        let media_type = "application/vnd.oci.image.config.v1+json";
        let config = Blob::new(media_type, serde_json::to_vec(&config)?);
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": config.descriptor(),
            "layers": layers.iter().map(Blob::descriptor).collect::<Vec<Value>>(),
        });
        let manifest = Blob::new(media_type, serde_json::to_vec(&manifest)?);
        Ok(Self { name: name.to_owned(), manifest, config, layers })
    }

    /// An image whose index in a registry names another architecture, by Go's name.
    ///
    /// # Errors
    /// When it cannot be packed.
    pub fn foreign(name: &str, architecture: &str) -> Result<Self> {
        let image = Self::build(name, &[], &ImageConfig::default())?;
        let media_type = "application/vnd.oci.image.index.v1+json";
        let mut descriptor = image.manifest.descriptor();
        descriptor["platform"] = json!({ "architecture": architecture, "os": "linux" });
        let index =
            json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": [descriptor] });
        let manifest = Blob::new(media_type, serde_json::to_vec(&index)?);
        Ok(Self { manifest, ..image })
    }

    /// The same image under another name.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// All blobs of the image.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Blob> {
        [&self.manifest, &self.config].into_iter().chain(&self.layers)
    }
}

/// Go's name for the architecture this is compiled for.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// The content of a layer, in order. All of it belongs to root and has the time 0.
#[derive(Debug, Clone, Default)]
pub struct ImageLayer {
    entries: Vec<LayerEntry>,
}

#[derive(Debug, Clone)]
struct LayerEntry {
    path: String,
    mode: u32,
    content: EntryContent,
}

#[derive(Debug, Clone)]
enum EntryContent {
    Directory,
    File(Vec<u8>),
    Link(String),
}

impl ImageLayer {
    /// Adds a directory.
    #[must_use]
    pub fn directory(self, path: &str, mode: u32) -> Self {
        self.entry(path, mode, EntryContent::Directory)
    }

    /// Adds a text file that all users may read.
    #[must_use]
    pub fn file(self, path: &str, text: &str) -> Self {
        self.entry(path, 0o644, EntryContent::File(text.as_bytes().to_vec()))
    }

    /// Adds a program that all users may run.
    #[must_use]
    pub fn program(self, path: &str, bytes: &[u8]) -> Self {
        self.entry(path, 0o755, EntryContent::File(bytes.to_vec()))
    }

    /// Adds a set-user-id program of root that all users may run.
    #[must_use]
    pub fn set_id_program(self, path: &str, bytes: &[u8]) -> Self {
        self.entry(path, 0o6755, EntryContent::File(bytes.to_vec()))
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn link(self, path: &str, to: &str) -> Self {
        self.entry(path, 0o777, EntryContent::Link(to.to_owned()))
    }

    fn entry(mut self, path: &str, mode: u32, content: EntryContent) -> Self {
        self.entries.push(LayerEntry { path: path.to_owned(), mode, content });
        self
    }

    fn pack(&self) -> Result<Blob> {
        let mut archive = tar::Builder::new(Vec::new());
        for entry in &self.entries {
            entry.pack(&mut archive)?;
        }
        Ok(Blob::new("application/vnd.oci.image.layer.v1.tar", archive.into_inner()?))
    }
}

impl LayerEntry {
    fn pack(&self, archive: &mut tar::Builder<Vec<u8>>) -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(self.mode);
        match &self.content {
            EntryContent::Directory => {
                header.set_entry_type(EntryType::Directory);
                header.set_size(0);
                archive.append_data(&mut header, &self.path, &[][..])?;
            }
            EntryContent::File(bytes) => {
                header.set_size(bytes.len().try_into()?);
                archive.append_data(&mut header, &self.path, bytes.as_slice())?;
            }
            EntryContent::Link(to) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_size(0);
                archive.append_link(&mut header, &self.path, to)?;
            }
        }
        Ok(())
    }
}
