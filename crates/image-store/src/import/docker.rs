//! Archives of `docker save`: `manifest.json` names the files of configurations and layers.

use std::io::{self, Read};

use crate::digest::Digest;
use crate::error::StoreError;
use crate::files::read_bounded;
use crate::lease::Lease;
use crate::oci::{Descriptor, DockerManifest, MAX_CONFIG, MAX_MANIFEST};
use crate::store::ImageStore;

use super::archive_file::ArchiveFile;
use super::install::{ImageParts, LayerSource};
use super::{ImportOptions, ImportedImage, OnProgress};

struct DockerLayers<'a> {
    archive: &'a mut ArchiveFile,
    files: &'a [String],
}

impl LayerSource for DockerLayers<'_> {
    fn open_layer(&mut self, position: usize) -> io::Result<(Box<dyn Read + '_>, Option<u64>)> {
        let name = self.files.get(position).ok_or(io::ErrorKind::NotFound)?;
        let (bytes, size) = self.archive.read(name)?;
        Ok((Box::new(bytes), Some(size)))
    }
}

impl ImageStore {
    pub(super) fn import_docker(
        &self,
        lease: &Lease,
        archive: &mut ArchiveFile,
        shown: &str,
        options: &ImportOptions,
        on_progress: OnProgress<'_>,
    ) -> Result<Vec<ImportedImage>, StoreError> {
        let wrong = |why: String| StoreError::Image {
            image: shown.to_owned(),
            what: "manifest.json".to_owned(),
            why,
        };
        let bytes = archive.read("manifest.json").and_then(|it| read_bounded(it.0, MAX_MANIFEST));
        let bytes = bytes.map_err(|error| wrong(error.to_string()))?;
        let manifests: Vec<DockerManifest> =
            serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        let is_only = manifests.len() == 1;
        let mut imported = Vec::new();
        for manifest in &manifests {
            let names = match &options.name {
                Some(name) if is_only => vec![name.clone()],
                _ => manifest.repo_tags.clone(),
            };
            let shown = names.first().map_or(shown, String::as_str);
            let image = DockerImage { manifest, names: &names, shown };
            imported.push(self.import_docker_image(
                lease,
                archive,
                &image,
                options,
                on_progress,
            )?);
        }
        if imported.is_empty() {
            return Err(wrong("it has no image".to_owned()));
        }
        Ok(imported)
    }

    fn import_docker_image(
        &self,
        lease: &Lease,
        archive: &mut ArchiveFile,
        image: &DockerImage<'_>,
        options: &ImportOptions,
        on_progress: OnProgress<'_>,
    ) -> Result<ImportedImage, StoreError> {
        let (blob, config) = image.config(archive)?;
        self.content.add(lease, &blob, config.as_slice())?;
        let files = &image.manifest.layers;
        let parts = ImageParts {
            shown: image.shown,
            names: image.names,
            target: None,
            blobs: vec![(blob.digest, blob.size)],
            config: &config,
            layers: vec![None; files.len()],
            platform: &options.platform,
        };
        self.install(lease, &parts, &mut DockerLayers { archive, files }, on_progress)
    }
}

struct DockerImage<'a> {
    manifest: &'a DockerManifest,
    names: &'a [String],
    shown: &'a str,
}

impl DockerImage<'_> {
    /// The configuration, whose file has its digest as name: `HEX.json` or `blobs/sha256/HEX`.
    fn config(&self, archive: &mut ArchiveFile) -> Result<(Descriptor, Vec<u8>), StoreError> {
        let name = &self.manifest.config;
        let read = archive.read(name).and_then(|it| read_bounded(it.0, MAX_CONFIG));
        let bytes = read.map_err(|error| StoreError::Image {
            image: self.shown.to_owned(),
            what: name.clone(),
            why: error.to_string(),
        })?;
        let digest = Digest::of(&bytes);
        let last = name.rsplit('/').next().unwrap_or(name);
        if let Some(wanted) = Digest::from_hex(last.strip_suffix(".json").unwrap_or(last)) {
            crate::content::check(&format!("{name} of {}", self.shown), &wanted, &digest)?;
        }
        let blob = Descriptor {
            media_type: String::new(),
            digest,
            size: bytes.len() as u64,
            platform: None,
            annotations: std::collections::BTreeMap::new(),
        };
        Ok((blob, bytes))
    }
}
