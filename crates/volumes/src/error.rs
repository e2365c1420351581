//! What can go wrong with volumes.

use std::io;
use std::path::PathBuf;

use oarsman_core::event::PodEvent;
use oarsman_core::persistent_volume::VolumeInUse;
use oarsman_host::tree;
use oarsman_seam::{Call, CallFault, SeamError};

/// Why a volume is not as it should be.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum VolumeError {
    /// The system did not do it.
    #[error("volume {volume:?}: cannot {doing} {}: {source}", path.display())]
    System {
        /// The volume, or its directory.
        volume: String,
        doing: &'static str,
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is there is not what the volume's type asks for.
    #[error("volume {volume:?}: hostPath type check failed: {} is not a {wanted}", path.display())]
    WrongType {
        volume: String,
        /// What was found to be something else.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
    },
    /// There is nothing where something should be.
    #[error("volume {volume:?}: hostPath type check failed: {} does not exist, and should be a {wanted}", path.display())]
    Missing {
        volume: String,
        /// Where nothing was found.
        path: PathBuf,
        /// What should be there.
        wanted: &'static str,
    },
    /// A file of the volume would lie outside of it, or where the volume keeps its own things.
    #[error("volume {volume:?}: no file can be called {path:?} in it")]
    Path {
        volume: String,
        /// The path of the file.
        path: String,
    },
    /// A file of the volume would be a directory, too.
    #[error(
        "volume {volume:?}: {file:?} cannot be a file and the directory of {below:?}: change the path of one of them"
    )]
    PathConflict {
        volume: String,
        /// The path of the file.
        file: String,
        /// The path of a file below it.
        below: String,
    },
    /// The medium of an emptyDir is none that is known.
    #[error(
        "volume {volume:?}: emptyDir.medium cannot be {medium:?}: leave it out, or make it Memory, HugePages or HugePages- with the size of a page"
    )]
    Medium {
        volume: String,
        /// What the volume says.
        medium: String,
    },
    /// What a local volume is on the node cannot be mounted.
    #[error("volume {volume:?}: {} of its local PersistentVolume {why}", path.display())]
    LocalPath {
        volume: String,
        /// The path on the node.
        path: PathBuf,
        why: &'static str,
    },
    /// The directory that a volume is mounted at holds something, and it is not known whose it is.
    #[error(
        "volume {volume:?}: {} is not empty though nothing is mounted there: move away what was written into it",
        path.display()
    )]
    NotEmpty { volume: String, path: PathBuf },
    /// An option that could do anything.
    #[error(
        "volume {volume:?}: {option:?} is not a mount option of nfs volumes: take it out of the PersistentVolume's mountOptions"
    )]
    MountOption { volume: String, option: String },
    /// The server of a volume has no address.
    #[error("volume {volume:?}: the address of the nfs server {server:?} is not known: {source}")]
    Server {
        volume: String,
        server: String,
        /// What the system said.
        source: io::Error,
    },
    /// Another pod has the volume.
    #[error(transparent)]
    InUse(#[from] VolumeInUse),
    /// The machine has no huge pages of that size.
    #[error(
        "volume {volume:?}: this node has no huge pages of {wanted}, but {}: change emptyDir.medium or the pages that the pod asks for",
        if there.is_empty() { "none at all".to_owned() } else { there.join(", ") }
    )]
    HugePageSize {
        volume: String,
        /// The size of the volume's pages.
        wanted: String,
        /// The sizes that the machine has.
        there: Vec<String>,
    },
    /// The kind of volume is not supported.
    #[error(
        "volume {volume:?}: this agent has no {kind} volumes; use emptyDir, hostPath, configMap, secret, downwardAPI, projected, nfs or persistentVolumeClaim"
    )]
    Unknown {
        volume: String,
        /// Its kind, as the field of the spec is called.
        kind: String,
    },
    /// A part of a volume cannot be mounted.
    #[error("failed to prepare subPath for volumeMount {volume:?} of container {container:?}: {}: {source}", path.display())]
    SubPath {
        volume: String,
        container: String,
        /// The part, in the volume.
        path: PathBuf,
        /// What stands in the way.
        source: io::Error,
    },
    /// Mounts do not pass between the host and a container.
    #[error(
        "mountPropagation {mode} of {container_path}: {} lies on the mount {}, which is not shared: run `mount --make-rshared {}` on the node, and see that it is so after a boot, or take mountPropagation out",
        host_path.display(), mount.display(), mount.display()
    )]
    Propagation {
        /// As the spec says it.
        mode: &'static str,
        container_path: String,
        host_path: PathBuf,
        /// The mount point that the path lies on.
        mount: PathBuf,
    },
    /// The volumes would lie outside of the root directory.
    #[error(
        "the pod's uid {uid:?} is not a plain name: set metadata.uid to letters, digits and dashes"
    )]
    Uid { uid: String },
    /// The call was given up, or its work panicked.
    #[error("{doing} {object}: {why}")]
    Call {
        doing: &'static str,
        /// The volumes, or the pod.
        object: String,
        why: String,
    },
    /// What is left of volumes could not be removed.
    #[error(transparent)]
    Remove(#[from] tree::RemoveTreeError),
}

impl VolumeError {
    /// A volume that was not set up, as it is told of the pod. Tools match on the sentences of the Go kubelet.
    pub fn event(&self) -> PodEvent {
        let text = self.to_string();
        let message = match (self, self.volume()) {
            (_, Some(volume)) => {
                let own = format!("volume {volume:?}: ");
                let why = text.strip_prefix(&own).unwrap_or(&text);
                format!("MountVolume.SetUp failed for volume {volume:?} : {why}")
            }
            (Self::Call { object, why, .. }, None) => format!(
                "Unable to attach or mount volumes: unmounted volumes=[{}], unattached volumes=[], failed to process volumes=[]: {why}",
                object.replace('"', "").replace(", ", " ")
            ),
            (_, None) => format!("Unable to attach or mount volumes: {text}"),
        };
        PodEvent::warning("FailedMount", message)
    }

    /// The volume that it is about, if it is about one.
    fn volume(&self) -> Option<&str> {
        match self {
            Self::System { volume, .. }
            | Self::WrongType { volume, .. }
            | Self::Missing { volume, .. }
            | Self::Path { volume, .. }
            | Self::PathConflict { volume, .. }
            | Self::Medium { volume, .. }
            | Self::HugePageSize { volume, .. }
            | Self::LocalPath { volume, .. }
            | Self::NotEmpty { volume, .. }
            | Self::MountOption { volume, .. }
            | Self::Server { volume, .. }
            | Self::Unknown { volume, .. }
            | Self::SubPath { volume, .. } => Some(volume),
            Self::Propagation { .. }
            | Self::Uid { .. }
            | Self::Call { .. }
            | Self::InUse(_)
            | Self::Remove(_) => None,
        }
    }
}

impl SeamError for VolumeError {
    fn of_fault(call: &Call, fault: CallFault) -> Self {
        Self::Call { doing: call.name, object: call.object.clone(), why: fault.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_that_is_not_set_up_is_told_in_the_go_kubelets_words() {
        let (volume, path) = ("data".to_owned(), PathBuf::from("/srv"));
        let hung = Call { name: "set up the volumes", object: "\"a\", \"b\"".to_owned() };
        let after = std::time::Duration::from_secs(120);
        let rows = [
            (
                VolumeError::WrongType { volume, path, wanted: "directory" },
                "MountVolume.SetUp failed for volume \"data\" : hostPath type check failed: /srv is not a directory",
            ),
            (
                VolumeError::of_fault(&hung, CallFault::TimedOut(after)),
                "Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[], failed to process volumes=[]: no answer within 120s",
            ),
            (
                VolumeError::Uid { uid: "../x".to_owned() },
                "Unable to attach or mount volumes: the pod's uid \"../x\" is not a plain name: set metadata.uid to letters, digits and dashes",
            ),
        ];
        for (error, message) in rows {
            assert_eq!(error.event(), PodEvent::warning("FailedMount", message));
        }
    }
}
