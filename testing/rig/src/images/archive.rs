//! Packs several images into one file, as `ctr images import` reads them.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};
use tar::{Builder, Header};

use super::{Blob, OciImage};

/// An OCI image layout as a tar archive; blobs that images share are in it once.
///
/// # Errors
/// When it cannot be packed.
pub fn archive(images: &[OciImage]) -> Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    append(&mut archive, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    append(&mut archive, "index.json", &serde_json::to_vec(&index(images))?)?;
    for blob in distinct_blobs(images).into_values() {
        let path = format!("blobs/{}", blob.digest.replace(':', "/"));
        append(&mut archive, &path, &blob.bytes)?;
    }
    Ok(archive.into_inner()?)
}

fn index(images: &[OciImage]) -> Value {
    let manifests: Vec<Value> = images
        .iter()
        .map(|image| {
            let mut descriptor = image.manifest.descriptor();
            descriptor["annotations"] = json!({ "io.containerd.image.name": image.name });
            descriptor
        })
        .collect();
    json!({ "schemaVersion": 2, "manifests": manifests })
}

fn distinct_blobs(images: &[OciImage]) -> BTreeMap<&str, &Blob> {
    let blobs = images.iter().flat_map(OciImage::blobs);
    blobs.map(|blob| (blob.digest.as_str(), blob)).collect()
}

fn append(archive: &mut Builder<Vec<u8>>, path: &str, bytes: &[u8]) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(bytes.len().try_into()?);
    Ok(archive.append_data(&mut header, path, bytes)?)
}
