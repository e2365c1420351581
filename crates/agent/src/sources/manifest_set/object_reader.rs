//! A manifest of any number of documents, each a Pod, a ConfigMap, a Secret or a list of them.

use std::fmt;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use oarsman_core::api::decode::{decode_config_map, decode_secret};
use oarsman_core::api::validate::{validate_config_map, validate_secret};
use oarsman_core::ids::FullName;
use oarsman_core::image_reference::with_default_tag;
use oarsman_core::pod::PodExt;
use oarsman_core::static_pod::{ManifestOrigin, StaticPodNaming};
use serde_json::Value;

use super::kinds::{self, ManifestKind};
use crate::manifest::{ManifestError, documents};
use crate::sources::manifest_reader::{
    self, ManifestReader, ParsedManifest, ParsedPod, catch_panic, parse_messages, place,
};
use crate::sources::message::ManifestProblem;

/// Names of files that are manifests where a whole directory is given, as for kubectl.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Reads the manifests of `oarsman run`.
#[derive(Clone, Debug)]
pub(super) struct ObjectReader {
    pub(super) node: String,
    /// Where paths begin that are not absolute.
    pub(super) base: PathBuf,
}

/// An object and where it was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LocatedObject {
    /// Which manifest, and which document of it.
    pub(super) place: String,
    pub(super) object: ParsedObject,
}

/// An object of a manifest.
#[derive(Clone, PartialEq)]
pub(super) enum ParsedObject {
    Pod(Box<Pod>),
    ConfigMap(ConfigMap),
    Secret(Secret),
}

impl ParsedObject {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Pod(_) => "Pod",
            Self::ConfigMap(_) => "ConfigMap",
            Self::Secret(_) => "Secret",
        }
    }

    pub(super) fn pod(&self) -> Option<&Pod> {
        match self {
            Self::Pod(pod) => Some(pod),
            Self::ConfigMap(_) | Self::Secret(_) => None,
        }
    }

    pub(super) fn full_name(&self) -> FullName {
        let metadata = match self {
            Self::Pod(pod) => return pod.full_name(),
            Self::ConfigMap(map) => &map.metadata,
            Self::Secret(secret) => &secret.metadata,
        };
        FullName {
            name: metadata.name.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
        }
    }
}

/// Shows kind and name, and no content: Secrets must not reach a log.
impl fmt::Debug for ParsedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.full_name())
    }
}

impl ManifestReader for ObjectReader {
    type Item = LocatedObject;

    const REQUIRED: bool = true;

    fn is_manifest(path: &Path) -> bool {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        ENDINGS.contains(&ending)
    }

    fn read(
        &self,
        bytes: &[u8],
        origin: &ManifestOrigin,
        _: &[LocatedObject],
    ) -> Result<ParsedManifest<LocatedObject>, Vec<ManifestProblem>> {
        let place = place(origin);
        let broken = |why: String| vec![ManifestProblem::new(place, why)];
        let found = catch_panic(|| documents(bytes).map_err(|error| error.to_string()));
        let found = found.map_err(broken)?;
        if found.is_empty() {
            return Err(broken(ManifestError::Empty.to_string()));
        }
        let mut parsed = ParsedManifest { items: Vec::new(), messages: Vec::new() };
        let mut wrong = Vec::new();
        for (place, document) in kinds::unfold(place, found) {
            match catch_panic(|| self.located(&place, document, origin)) {
                Ok(read) => {
                    parsed.items.extend(read.items);
                    parsed.messages.extend(read.messages);
                }
                Err(why) => wrong.push(ManifestProblem::new(place, why)),
            }
        }
        if wrong.is_empty() { Ok(parsed) } else { Err(wrong) }
    }

    fn name(located: &LocatedObject) -> String {
        let name = located.object.full_name();
        format!("{} {name}", located.object.kind())
    }

    fn pod(located: &LocatedObject) -> Option<&Pod> {
        located.object.pod()
    }
}

impl ObjectReader {
    fn located(
        &self,
        place: &str,
        value: Value,
        origin: &ManifestOrigin,
    ) -> Result<ParsedManifest<LocatedObject>, String> {
        let kind = kinds::of(&value)?;
        check_name(&value)?;
        let (object, unknown_fields) = match kind {
            ManifestKind::Pod => self.read_pod(value, origin)?,
            ManifestKind::ConfigMap => config_map(value)?,
            ManifestKind::Secret => secret(value)?,
        };
        let located = LocatedObject { place: place.to_owned(), object };
        let messages =
            parse_messages(place, located.object.kind(), &Self::name(&located), &unknown_fields);
        Ok(ParsedManifest { items: vec![located], messages })
    }

    fn read_pod(
        &self,
        value: Value,
        origin: &ManifestOrigin,
    ) -> Result<(ParsedObject, Vec<String>), String> {
        let ParsedPod { pod, unknown_fields } = manifest_reader::pod(
            value,
            &self.absolute(origin),
            &self.node,
            StaticPodNaming::AsWritten,
        )?;
        check_images(&pod)?;
        Ok((ParsedObject::Pod(Box::new(pod)), unknown_fields))
    }

    /// The same file gives the same pod, wherever it is named from.
    fn absolute(&self, origin: &ManifestOrigin) -> ManifestOrigin {
        match origin {
            ManifestOrigin::File(path) => {
                let path: PathBuf = self.base.join(path).components().collect();
                ManifestOrigin::File(path.to_string_lossy().into_owned())
            }
            ManifestOrigin::Url(url) => ManifestOrigin::Url(url.clone()),
        }
    }
}

fn check_name(value: &Value) -> Result<(), String> {
    match value["metadata"].get("name") {
        None | Some(Value::Null) => {
            Err("metadata.name: Required value: give it a name, as in metadata: {name: web}"
                .to_owned())
        }
        Some(_) => Ok(()),
    }
}

/// An API server leaves it to the node to find that no image can have such a name; a person would rather know at once.
fn check_images(pod: &Pod) -> Result<(), String> {
    for container in pod.all_containers() {
        let image = container.spec.image.as_deref().unwrap_or_default();
        with_default_tag(image).map_err(|error| {
            let name = &container.spec.name;
            format!("the image of container {name:?}: {error}: write it as in registry.example/team/web:1.2")
        })?;
    }
    Ok(())
}

fn config_map(value: Value) -> Result<(ParsedObject, Vec<String>), String> {
    let (mut map, unknown_fields) = decode_config_map(value).map_err(|e| e.to_string())?;
    in_some_namespace(&mut map.metadata.namespace);
    manifest_reader::check_valid("ConfigMap", &validate_config_map(&map))?;
    Ok((ParsedObject::ConfigMap(map), unknown_fields))
}

fn secret(value: Value) -> Result<(ParsedObject, Vec<String>), String> {
    let (mut secret, unknown_fields) = decode_secret(value).map_err(|e| e.to_string())?;
    in_some_namespace(&mut secret.metadata.namespace);
    manifest_reader::check_valid("Secret", &validate_secret(&secret))?;
    Ok((ParsedObject::Secret(secret), unknown_fields))
}

fn in_some_namespace(namespace: &mut Option<String>) {
    if namespace.as_deref().unwrap_or_default().is_empty() {
        *namespace = Some("default".to_owned());
    }
}
