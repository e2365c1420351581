//! The file `userns` of a pod, as the Go kubelet writes and reads it.

use serde::{Deserialize, Serialize};

use super::{FIRST_ID, HostIds};

/// The whole file.
#[derive(Serialize, Deserialize)]
struct MappingsFile {
    #[serde(rename = "uidMappings", default)]
    uid_mappings: Vec<FileMapping>,
    #[serde(rename = "gidMappings", default)]
    gid_mappings: Vec<FileMapping>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileMapping {
    #[serde(rename = "hostId")]
    host_id: u32,
    #[serde(rename = "containerId")]
    container_id: u32,
    length: u32,
}

/// What a file says cannot be the ids of a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserNamespaceFileError {
    /// It is no JSON, or has other fields.
    #[error("it is not what a kubelet writes: {0}")]
    Format(String),
    /// Not one and the same range for users and groups, which begins with 0 in the pod.
    #[error("users and groups must have one and the same range that begins with 0 in the pod")]
    NotOneRange,
    /// Ids of the node itself, or none at all.
    #[error("{length} ids from {first} on are not multiples of 65536 above the node's own ids")]
    Range {
        /// The first id.
        first: u32,
        /// How many there are.
        length: u32,
    },
}

/// The text of the file.
pub fn mappings_file(ids: HostIds) -> String {
    let HostIds { first: host_id, length } = ids;
    let mapping = vec![FileMapping { host_id, container_id: 0, length }];
    let file = MappingsFile { uid_mappings: mapping.clone(), gid_mappings: mapping };
    // Numbers and names: there is nothing in it that could not be written.
    serde_json::to_string(&file).unwrap_or_default()
}

/// The ids that a file tells of.
///
/// # Errors
/// When that cannot be the ids of a pod.
pub fn parse_mappings_file(text: &str) -> Result<HostIds, UserNamespaceFileError> {
    let format = |error: serde_json::Error| UserNamespaceFileError::Format(error.to_string());
    let file: MappingsFile = serde_json::from_str(text).map_err(format)?;
    let [mapping] = file.uid_mappings[..] else { return Err(UserNamespaceFileError::NotOneRange) };
    if file.gid_mappings != [mapping] || mapping.container_id != 0 {
        return Err(UserNamespaceFileError::NotOneRange);
    }
    let FileMapping { host_id: first, length, .. } = mapping;
    let is_whole = |number: u32| number >= FIRST_ID && number.is_multiple_of(FIRST_ID);
    match is_whole(first) && is_whole(length) && first.checked_add(length - 1).is_some() {
        true => Ok(HostIds { first, length }),
        false => Err(UserNamespaceFileError::Range { first, length }),
    }
}
