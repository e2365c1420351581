//! Volumes made of what is known about a pod and what it refers to: which files, with which bytes and modes.

mod downward;
mod issued;
mod limits;
mod shared;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ConfigMapProjection, DownwardAPIProjection, KeyToPath, Pod, ProjectedVolumeSource,
    SecretProjection, Volume, VolumeProjection,
};

use super::env::{Lookup, ObjectData};
use super::error::{ConfigError, PayloadError};
use super::node_context::NodeContext;
use crate::event::PodEvent;
use crate::pod::PodExt;
use crate::pod_certificate::CertificateSource;
use crate::references::ObjectKind;
use limits::PayloadLimits;
use shared::SharedValues;

/// What a volume's files may be done with, unless it says otherwise.
const DEFAULT_MODE: i32 = 0o644;

/// The files of volumes that are made of objects and fields, by volume.
pub type Payloads = BTreeMap<String, Payload>;

/// The files of one volume, by their paths in it.
pub type Payload = BTreeMap<String, PayloadFile>;

/// A file of a volume that is made of ConfigMaps, Secrets, tokens and fields.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PayloadFile {
    /// What is in it; files that are made of one key share them.
    pub bytes: Arc<[u8]>,
    /// Who may do what with it.
    pub mode: u32,
    /// The user that owns it; root if none is given.
    pub owner: Option<u32>,
    /// Whether a file that is there stays as it is, and none is made: its content is not known.
    pub keep: bool,
}

/// Tells how much there is, and nothing of what it says: it may be secret.
impl fmt::Debug for PayloadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, mode {:o}", self.bytes.len(), self.mode)
    }
}

/// A volume that cannot be made, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume {volume:?} : {why}")]
pub struct VolumeFault {
    /// The name of the volume in the spec.
    pub volume: String,
    /// What stands in the way.
    pub why: ConfigError,
}

impl VolumeFault {
    /// As it is told of the pod.
    pub fn event(&self) -> PodEvent {
        PodEvent::warning("FailedMount", self.to_string())
    }
}

/// The files of every volume of a pod that is made of objects and fields and that a container mounts, and the volumes
/// whose contents could not be determined.
pub fn payloads(
    pod: &Pod,
    lookup: &Lookup,
    node: &NodeContext<'_>,
) -> (Payloads, Vec<VolumeFault>) {
    let mounted = pod.mounted_volumes();
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let (limits, shared) = (PayloadLimits::default(), SharedValues::default());
    let source = VolumeContext { pod, lookup, node, limits: &limits, shared: &shared };
    let (mut payloads, mut faults) = (Payloads::new(), Vec::new());
    for volume in volumes.iter().filter(|volume| mounted.contains(&volume.name)) {
        match source.payload(volume) {
            None => {}
            Some(Ok(payload)) => drop(payloads.insert(volume.name.clone(), payload)),
            Some(Err(why)) => faults.push(VolumeFault { volume: volume.name.clone(), why }),
        }
    }
    (payloads, faults)
}

/// What files are made from.
#[derive(Clone, Copy)]
struct VolumeContext<'a> {
    pod: &'a Pod,
    lookup: &'a Lookup,
    node: &'a NodeContext<'a>,
    /// Those of the whole pod.
    limits: &'a PayloadLimits,
    /// What files of this pod hold already.
    shared: &'a SharedValues,
}

/// Which object, which of its keys, and whether it has to be there.
struct ObjectSelection<'a> {
    kind: ObjectKind,
    name: &'a str,
    items: &'a [KeyToPath],
    optional: bool,
}

impl VolumeContext<'_> {
    /// None for a volume of another kind.
    fn payload(&self, volume: &Volume) -> Option<Result<Payload, ConfigError>> {
        if let Some(map) = &volume.config_map {
            let wanted = ObjectSelection {
                kind: ObjectKind::ConfigMap,
                name: &map.name,
                items: map.items.as_deref().unwrap_or_default(),
                optional: map.optional == Some(true),
            };
            return Some(self.object(&wanted, map.default_mode));
        }
        if let Some(secret) = &volume.secret {
            let wanted = ObjectSelection {
                kind: ObjectKind::Secret,
                name: secret.secret_name.as_deref().unwrap_or_default(),
                items: secret.items.as_deref().unwrap_or_default(),
                optional: secret.optional == Some(true),
            };
            return Some(self.object(&wanted, secret.default_mode));
        }
        if let Some(downward) = &volume.downward_api {
            let items = downward.items.as_deref().unwrap_or_default();
            return Some(downward::payload(self, items, downward.default_mode));
        }
        volume.projected.as_ref().map(|projected| self.projected(&volume.name, projected))
    }

    /// Later sources go over earlier ones.
    fn projected(
        &self,
        volume: &str,
        projected: &ProjectedVolumeSource,
    ) -> Result<Payload, ConfigError> {
        let mut payload = Payload::new();
        for (index, source) in projected.sources.iter().flatten().enumerate() {
            let at = CertificateSource { volume: volume.to_owned(), index };
            payload.extend(self.projection(source, &at, projected.default_mode)?);
        }
        Ok(payload)
    }

    fn projection(
        &self,
        source: &VolumeProjection,
        at: &CertificateSource,
        mode: Option<i32>,
    ) -> Result<Payload, ConfigError> {
        if let Some(ConfigMapProjection { name, items, optional }) = &source.config_map {
            let items = items.as_deref().unwrap_or_default();
            let optional = *optional == Some(true);
            return self.object(
                &ObjectSelection { kind: ObjectKind::ConfigMap, name, items, optional },
                mode,
            );
        }
        if let Some(SecretProjection { name, items, optional }) = &source.secret {
            let items = items.as_deref().unwrap_or_default();
            let optional = *optional == Some(true);
            return self.object(
                &ObjectSelection { kind: ObjectKind::Secret, name, items, optional },
                mode,
            );
        }
        if let Some(DownwardAPIProjection { items }) = &source.downward_api {
            return downward::payload(self, items.as_deref().unwrap_or_default(), mode);
        }
        if let Some(wanted) = &source.service_account_token {
            return self.token(wanted, mode);
        }
        if let Some(wanted) = &source.cluster_trust_bundle {
            return self.trust_bundle(wanted, mode);
        }
        match &source.pod_certificate {
            Some(wanted) => self.certificate(wanted, at, mode),
            None => Ok(Payload::new()),
        }
    }

    /// The files of a ConfigMap or Secret: all its keys, or those that are listed.
    fn object(
        &self,
        wanted: &ObjectSelection<'_>,
        mode: Option<i32>,
    ) -> Result<Payload, ConfigError> {
        let ObjectSelection { kind, name, items, optional } = *wanted;
        let namespace = self.pod.full_name().namespace;
        let Some(object) = self.lookup.object(kind, &namespace, name) else {
            let missing = || PayloadError::NotFound { kind: kind.as_str(), name: name.to_owned() };
            return if optional { Ok(Payload::new()) } else { Err(missing().into()) };
        };
        match items.is_empty() {
            true => self.whole(object, wanted, mode),
            false => self.listed(object, wanted, mode),
        }
    }

    fn whole(
        &self,
        object: ObjectData<'_>,
        wanted: &ObjectSelection<'_>,
        mode: Option<i32>,
    ) -> Result<Payload, ConfigError> {
        let files = object.for_files().into_iter().map(|(key, bytes)| {
            let bytes = self.shared.get(wanted.kind, wanted.name, key, bytes);
            Ok((key.to_owned(), self.file(key, bytes, None, mode)?))
        });
        files.collect()
    }

    fn listed(
        &self,
        object: ObjectData<'_>,
        wanted: &ObjectSelection<'_>,
        mode: Option<i32>,
    ) -> Result<Payload, ConfigError> {
        let mut payload = Payload::new();
        for item in wanted.items {
            let Some(bytes) = object.for_file(&item.key) else {
                if wanted.optional {
                    continue;
                }
                let (kind, key) = (wanted.kind.as_str(), item.key.clone());
                return Err(PayloadError::NoKey { kind, key }.into());
            };
            let bytes = self.shared.get(wanted.kind, wanted.name, &item.key, bytes);
            let path = plain(&item.path);
            let file = self.file(&path, bytes, item.mode, mode)?;
            payload.insert(path, file);
        }
        Ok(payload)
    }

    /// One file, if the pod may have another one of that size.
    fn file(
        &self,
        path: &str,
        bytes: Arc<[u8]>,
        own: Option<i32>,
        of_volume: Option<i32>,
    ) -> Result<PayloadFile, ConfigError> {
        self.limits.take(path, bytes.len())?;
        let mode = own.or(of_volume).unwrap_or(DEFAULT_MODE);
        let mode = u32::try_from(mode).unwrap_or_default() & 0o777;
        Ok(PayloadFile { bytes, mode, owner: None, keep: false })
    }
}

/// A path without what leads nowhere: `a//./b` is `a/b`.
fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}
