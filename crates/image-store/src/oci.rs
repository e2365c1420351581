//! The documents of an image: descriptors, indexes, manifests and configurations.
//!
//! Types of our own, with the fields that are used: the `oci-spec` crate brings derive macros and regular expressions for builders
//! that nothing here needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// No manifest or index is larger in practice; registries refuse them at 4 MiB.
pub(crate) const MAX_MANIFEST: u64 = 4 << 20;
/// No configuration is larger in practice: histories and labels are some kilobytes.
pub(crate) const MAX_CONFIG: u64 = 8 << 20;
/// overlayfs takes no more layers.
pub(crate) const MAX_LAYERS: usize = 500;

/// What a blob is and how to know it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// What its bytes are.
    #[serde(default)]
    pub media_type: String,
    /// The digest of its bytes.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
    /// For which machine it is; in indexes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Such as its name.
    #[serde(default, deserialize_with = "or_null", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A kind of machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Platform {
    /// As Go names it, such as `linux`.
    #[serde(default)]
    pub os: String,
    /// As Go names it, such as `amd64`.
    #[serde(default)]
    pub architecture: String,
    /// Such as `v8`; empty for the usual one.
    #[serde(default)]
    pub variant: String,
}

impl Platform {
    /// This machine.
    pub fn host() -> Self {
        let (architecture, variant) = match std::env::consts::ARCH {
            "x86_64" => ("amd64", ""),
            "aarch64" => ("arm64", "v8"),
            "arm" => ("arm", "v7"),
            "x86" => ("386", ""),
            other => (other, ""),
        };
        Self {
            os: "linux".to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.to_owned(),
        }
    }

    /// Whether an image for `image` runs on this platform. An image without variant runs on any of its architecture.
    pub(crate) fn runs(&self, image: &Self) -> bool {
        self.os == image.os
            && self.architecture == image.architecture
            && (image.variant.is_empty() || image.variant == self.variant)
    }

    pub(crate) fn shown(&self) -> String {
        let parts = [&self.os, &self.architecture, &self.variant];
        let parts: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        parts.join("/")
    }
}

/// An index or a manifest: what a name or a descriptor of an index leads to.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    #[serde(default)]
    pub(crate) schema_version: u32,
    /// Of an index.
    pub(crate) manifests: Option<Vec<Descriptor>>,
    /// Of a manifest.
    pub(crate) config: Option<Descriptor>,
    /// Of a manifest.
    pub(crate) layers: Option<Vec<Descriptor>>,
}

/// The configuration of an image, whose digest is the image's id.
#[derive(Debug, Deserialize)]
pub(crate) struct ConfigFile {
    #[serde(flatten)]
    pub(crate) platform: Platform,
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) config: ImageRunConfig,
    pub(crate) rootfs: RootFs,
    pub(crate) created: Option<String>,
}

/// The layers, uncompressed.
#[derive(Debug, Deserialize)]
pub(crate) struct RootFs {
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) diff_ids: Vec<Digest>,
}

/// How an image wants to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ImageRunConfig {
    /// A user and maybe a group, by name or number.
    #[serde(deserialize_with = "or_null")]
    pub user: String,
    /// `NAME=VALUE`.
    #[serde(deserialize_with = "or_null")]
    pub env: Vec<String>,
    /// The program, and its first arguments.
    #[serde(deserialize_with = "or_null")]
    pub entrypoint: Vec<String>,
    /// The other arguments, or all when there is no entrypoint.
    #[serde(deserialize_with = "or_null")]
    pub cmd: Vec<String>,
    /// Where it starts.
    #[serde(deserialize_with = "or_null")]
    pub working_dir: String,
    /// Such as `SIGQUIT`; empty for SIGTERM.
    #[serde(deserialize_with = "or_null")]
    pub stop_signal: String,
    /// Any.
    #[serde(deserialize_with = "or_null")]
    pub labels: BTreeMap<String, String>,
    /// Directories for volumes; the values are empty objects.
    #[serde(deserialize_with = "or_null")]
    pub volumes: BTreeMap<String, serde_json::Value>,
    /// Such as `80/tcp`; the values are empty objects.
    #[serde(deserialize_with = "or_null")]
    pub exposed_ports: BTreeMap<String, serde_json::Value>,
}

/// One image of a `docker save` archive.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct DockerManifest {
    pub(crate) config: String,
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) repo_tags: Vec<String>,
    #[serde(default, deserialize_with = "or_null")]
    pub(crate) layers: Vec<String>,
}

/// Docker writes `null` for what is empty.
fn or_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What a document cannot be used for, if anything.
impl Document {
    /// The descriptors of an index.
    pub(crate) fn into_index(self) -> Result<Vec<Descriptor>, String> {
        self.manifests.ok_or_else(|| "it is no index of images".to_owned())
    }

    /// The configuration and the layers of a manifest.
    pub(crate) fn into_manifest(self) -> Result<(Descriptor, Vec<Descriptor>), String> {
        if self.schema_version == 1 {
            return Err("it is a manifest of Docker's schema 1, which was replaced in 2016: build the image again".to_owned());
        }
        let config = self.config.ok_or("it is neither a manifest nor an index of images")?;
        let layers = self.layers.unwrap_or_default();
        if layers.len() > MAX_LAYERS {
            return Err(format!(
                "it has {} layers, and overlayfs takes {MAX_LAYERS}",
                layers.len()
            ));
        }
        if let Some(layer) = layers.iter().find(|it| it.media_type.ends_with("+encrypted")) {
            return Err(format!("its layer {} is encrypted", layer.digest));
        }
        Ok((config, layers))
    }
}

/// Parses documents, for fuzzing: whatever the bytes are, there is an answer.
#[doc(hidden)]
pub fn fuzz_documents(bytes: &[u8]) {
    if let Ok(document) = serde_json::from_slice::<Document>(bytes) {
        let is_index = document.manifests.is_some();
        let usable = if is_index {
            document.into_index().map(drop)
        } else {
            document.into_manifest().map(|(_, layers)| assert!(layers.len() <= MAX_LAYERS))
        };
        drop(usable);
    }
    if let Ok(config) = serde_json::from_slice::<ConfigFile>(bytes) {
        let text = serde_json::to_string(&config.config).unwrap_or_default();
        let again = serde_json::from_str::<ImageRunConfig>(&text).ok();
        assert_eq!(again.as_ref(), Some(&config.config), "a configuration is read differently");
    }
    drop(serde_json::from_slice::<Vec<DockerManifest>>(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_what_docker_writes_for_empty() {
        let text = r#"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":null},
            "config":{"User":null,"Env":null,"Cmd":["a"],"Labels":null,"Volumes":{"/data":{}}}}"#;
        let file: ConfigFile = serde_json::from_str(text).unwrap();
        assert_eq!(file.config.cmd, ["a"]);
        assert!(file.config.volumes.contains_key("/data"));
        assert_eq!(file.platform.shown(), "linux/amd64");
        let none: ConfigFile = serde_json::from_str(r#"{"rootfs":{},"config":null}"#).unwrap();
        assert_eq!(none.config, ImageRunConfig::default());
    }

    #[test]
    fn an_image_runs_on_its_platform_only() {
        let platform = |os: &str, architecture: &str, variant: &str| Platform {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.to_owned(),
        };
        let arm = platform("linux", "arm64", "v8");
        for (image, fine) in [
            (platform("linux", "arm64", "v8"), true),
            (platform("linux", "arm64", ""), true),
            (platform("linux", "arm64", "v9"), false),
            (platform("linux", "amd64", ""), false),
            (platform("windows", "arm64", ""), false),
            (platform("unknown", "unknown", ""), false),
        ] {
            assert_eq!(arm.runs(&image), fine, "{}", image.shown());
        }
    }
}
