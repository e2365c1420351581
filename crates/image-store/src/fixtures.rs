//! Archives and images for tests, also such as no program writes.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::json;

use crate::digest::Digest;
use crate::oci::{Descriptor, Platform};
use crate::store::ImageStore;
use crate::unpack::UnpackBounds;

/// Writes tar archives without any check.
#[derive(Clone, Debug, Default)]
pub(crate) struct TarWriter(pub(crate) Vec<u8>);

/// What a header says.
#[derive(Clone, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) kind: u8,
    pub(crate) name: &'a str,
    pub(crate) link: &'a str,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: u64,
    pub(crate) device: (u32, u32),
    pub(crate) size: u64,
}

impl<'a> RawEntry<'a> {
    pub(crate) fn new(kind: u8, name: &'a str) -> Self {
        let mode = if kind == b'5' { 0o755 } else { 0o644 };
        Self {
            kind,
            name,
            link: "",
            mode,
            owner: (0, 0),
            mtime: 1_000_000,
            device: (0, 0),
            size: 0,
        }
    }
}

fn put(block: &mut [u8; 512], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

pub(crate) fn header(entry: &RawEntry<'_>) -> [u8; 512] {
    let mut block = [0; 512];
    put(&mut block, 0, entry.name.as_bytes());
    put(&mut block, 100, format!("{:07o}", entry.mode).as_bytes());
    put(&mut block, 108, format!("{:07o}", entry.owner.0).as_bytes());
    put(&mut block, 116, format!("{:07o}", entry.owner.1).as_bytes());
    put(&mut block, 124, format!("{:011o}", entry.size).as_bytes());
    put(&mut block, 136, format!("{:011o}", entry.mtime).as_bytes());
    block[156] = entry.kind;
    put(&mut block, 157, entry.link.as_bytes());
    put(&mut block, 257, b"ustar\x0000");
    put(&mut block, 329, format!("{:07o}", entry.device.0).as_bytes());
    put(&mut block, 337, format!("{:07o}", entry.device.1).as_bytes());
    sum(&mut block);
    block
}

pub(crate) fn sum(block: &mut [u8; 512]) {
    put(block, 148, b"        ");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    put(block, 148, format!("{sum:06o}\0 ").as_bytes());
}

impl TarWriter {
    pub(crate) fn raw(mut self, entry: &RawEntry<'_>, data: &[u8]) -> Self {
        self.0.extend_from_slice(&header(entry));
        self.data(data);
        self
    }

    fn data(&mut self, data: &[u8]) {
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.raw(&RawEntry::new(b'5', name), b"")
    }

    pub(crate) fn file(self, name: &str, data: &[u8]) -> Self {
        let size = data.len() as u64;
        self.raw(&RawEntry { size, ..RawEntry::new(b'0', name) }, data)
    }

    pub(crate) fn symlink(self, name: &str, link: &str) -> Self {
        self.raw(&RawEntry { link, ..RawEntry::new(b'2', name) }, b"")
    }

    pub(crate) fn hard_link(self, name: &str, link: &str) -> Self {
        self.raw(&RawEntry { link, ..RawEntry::new(b'1', name) }, b"")
    }

    pub(crate) fn device(self, kind: u8, name: &str, device: (u32, u32)) -> Self {
        self.raw(&RawEntry { device, ..RawEntry::new(kind, name) }, b"")
    }

    /// A pax header for the next entry.
    pub(crate) fn pax(self, records: &[(&str, &[u8])]) -> Self {
        let mut data = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let length =
                (1..).map(|digits| rest + digits).find(|it| it.to_string().len() + rest == *it);
            data.extend_from_slice(format!("{} {key}=", length.unwrap()).as_bytes());
            data.extend_from_slice(value);
            data.push(b'\n');
        }
        let size = data.len() as u64;
        self.raw(&RawEntry { size, ..RawEntry::new(b'x', "pax") }, &data)
    }

    /// A GNU long name (`L`) or long target (`K`) for the next entry.
    pub(crate) fn long(self, kind: u8, name: &str) -> Self {
        let data = [name.as_bytes(), b"\0"].concat();
        let size = data.len() as u64;
        self.raw(&RawEntry { size, ..RawEntry::new(kind, "././@LongLink") }, &data)
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// Small bounds, so that tests meet them.
pub(crate) fn small_bounds() -> UnpackBounds {
    UnpackBounds {
        entries: 5000,
        bytes: 64 << 20,
        header_bytes: 64 << 10,
        free_bytes: 1 << 20,
        ratio: 100,
    }
}

pub(crate) fn store(directory: &Path) -> ImageStore {
    ImageStore::open(&directory.join("store"), small_bounds()).unwrap()
}

pub(crate) fn descriptor(media_type: &str, bytes: &[u8]) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(bytes),
        size: bytes.len() as u64,
        platform: None,
        annotations: std::collections::BTreeMap::new(),
    }
}

pub(crate) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The blobs of an image, by digest, and the descriptor of its manifest.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestImage {
    pub(crate) blobs: Vec<Vec<u8>>,
    pub(crate) config: Vec<u8>,
    pub(crate) layers: Vec<Vec<u8>>,
    pub(crate) root: Option<Descriptor>,
}

impl TestImage {
    /// Of archives, each with its compressed form.
    pub(crate) fn new(layers: &[(Vec<u8>, Vec<u8>)]) -> Self {
        Self::on(&Platform::host(), layers)
    }

    pub(crate) fn plain(layers: &[Vec<u8>]) -> Self {
        let layers: Vec<_> = layers.iter().map(|it| (it.clone(), it.clone())).collect();
        Self::new(&layers)
    }

    pub(crate) fn on(platform: &Platform, layers: &[(Vec<u8>, Vec<u8>)]) -> Self {
        let diff_ids: Vec<Digest> = layers.iter().map(|(plain, _)| Digest::of(plain)).collect();
        let config = json!({
            "architecture": platform.architecture, "os": platform.os, "created": "2026-01-01T00:00:00Z",
            "config": { "User": "7:8", "Env": ["A=b"], "Entrypoint": ["/run"], "Cmd": null, "WorkingDir": "/w",
                "StopSignal": "SIGQUIT", "Labels": { "l": "m" }, "Volumes": { "/data": {} } },
            "rootfs": { "type": "layers", "diff_ids": diff_ids },
        });
        let config = config.to_string().into_bytes();
        let layers: Vec<Vec<u8>> = layers.iter().map(|(_, packed)| packed.clone()).collect();
        let described: Vec<Descriptor> =
            layers.iter().map(|layer| descriptor(LAYER, layer)).collect();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config), "layers": described,
        });
        let manifest = manifest.to_string().into_bytes();
        let mut root = descriptor(MANIFEST, &manifest);
        root.platform = Some(platform.clone());
        let mut blobs = layers.clone();
        blobs.extend([config.clone(), manifest]);
        Self { blobs, config, layers, root: Some(root) }
    }

    pub(crate) fn id(&self) -> Digest {
        Digest::of(&self.config)
    }

    pub(crate) fn root(&self) -> Descriptor {
        self.root.clone().unwrap()
    }

    /// As a `docker save` archive.
    pub(crate) fn docker(&self, tags: &[&str]) -> Vec<u8> {
        let config = format!("{}.json", self.id().hex());
        let names: Vec<String> =
            (0..self.layers.len()).map(|at| format!("{at}/layer.tar")).collect();
        let manifest = json!([{ "Config": config, "RepoTags": tags, "Layers": names }]);
        let mut archive = TarWriter::default().file(&config, &self.config);
        for (name, layer) in names.iter().zip(&self.layers) {
            archive = archive.file(name, layer);
        }
        archive.file("manifest.json", manifest.to_string().as_bytes()).end()
    }
}

/// The files of an OCI layout: images with the texts of their annotations.
pub(crate) fn layout(images: &[(&TestImage, Option<&str>)]) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec())];
    let mut roots = Vec::new();
    for (image, name) in images {
        let mut root = image.root();
        if let Some(name) = name {
            root.annotations
                .insert("org.opencontainers.image.ref.name".to_owned(), (*name).to_owned());
        }
        roots.push(root);
        for blob in &image.blobs {
            files.push((format!("blobs/sha256/{}", Digest::of(blob).hex()), blob.clone()));
        }
    }
    let index = json!({ "schemaVersion": 2, "manifests": roots });
    files.push(("index.json".to_owned(), index.to_string().into_bytes()));
    files
}

pub(crate) fn write_layout(directory: &Path, files: &[(String, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

pub(crate) fn layout_archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let archive = files.iter().fold(TarWriter::default(), |archive, (name, bytes)| {
        let longer = name.len() >= 100;
        let archive = if longer { archive.long(b'L', name) } else { archive };
        archive.file(&name[..name.len().min(99)], bytes)
    });
    archive.end()
}
