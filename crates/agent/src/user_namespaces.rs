//! The user namespaces of pods: every pod that wants one has ids of its own, also after a restart of the agent.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use oarsman_core::ids::PodUid;
use oarsman_core::user_namespace::{
    AllocatedIds, HostIds, NoIdsLeft, UserNamespaceFileError, UserNamespaceSettings, mappings_file,
    parse_mappings_file,
};
use oarsman_state::{FileError, PodFiles};
use tokio::sync::Mutex;

/// Why a pod has no user namespace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UserNamespaceError {
    #[error(
        "spec.hostUsers is false, and the runtime handler {handler:?} does not support user namespaces: unset the field, or use a runtime class that does"
    )]
    NotSupported { handler: String },
    #[error(transparent)]
    NoIdsLeft(#[from] NoIdsLeft),
    #[error(
        "spec.hostUsers is false, and the ids of another pod are not known: the file userns of pod {pod}: {error}: delete that pod"
    )]
    UnknownIds { pod: PodUid, error: UserNamespaceFileError },
    #[error(transparent)]
    Files(#[from] FileError),
}

/// The ids of all pods.
pub(crate) struct UserNamespaceManager {
    files: Arc<dyn PodFiles>,
    settings: UserNamespaceSettings,
    /// Held while files are written: no two pods get the same ids.
    state: Mutex<UserNamespaceState>,
}

#[derive(Default)]
struct UserNamespaceState {
    /// None before the files were read.
    allocated: Option<AllocatedIds>,
    /// Pods whose ids are on disk.
    written: BTreeSet<PodUid>,
    /// A pod whose file cannot be understood. It may have any ids, so that no other pod gets new ones.
    unknown: Option<(PodUid, UserNamespaceFileError)>,
}

impl UserNamespaceManager {
    pub(crate) fn new(files: Arc<dyn PodFiles>, settings: UserNamespaceSettings) -> Self {
        Self { files, settings, state: Mutex::default() }
    }

    /// The ids of a pod. They are on disk before anything runs with them.
    pub(crate) async fn get_or_create(&self, pod: &PodUid) -> Result<HostIds, UserNamespaceError> {
        let mut state = self.state.lock().await;
        if state.allocated.is_none() || state.unknown.is_some() {
            let files = self.files.user_namespaces().await?;
            state.load(self.settings, files);
        }
        let ids = state.allocate(pod, self.settings)?;
        if !state.written.contains(pod) {
            // A write that failed may have taken effect: the ids stay this pod's.
            self.files.write_user_namespace(pod, &mappings_file(ids)).await?;
            state.written.insert(pod.clone());
        }
        Ok(ids)
    }

    /// Nothing of the pod runs any more.
    pub(crate) async fn release(&self, pod: &PodUid) -> Result<(), FileError> {
        let mut state = self.state.lock().await;
        if state.allocated.as_ref().is_some_and(|allocated| allocated.get(pod).is_some()) {
            self.files.remove_user_namespace(pod).await?;
            state.forget(pod);
        }
        Ok(())
    }

    /// The pod's directory is gone, and its file with it.
    pub(crate) async fn forget(&self, pod: &PodUid) {
        self.state.lock().await.forget(pod);
    }
}

impl UserNamespaceState {
    /// Takes over what agents before this one wrote.
    fn load(
        &mut self,
        settings: UserNamespaceSettings,
        files: impl IntoIterator<Item = (PodUid, String)>,
    ) {
        self.unknown = None;
        let allocated = self.allocated.get_or_insert_with(|| AllocatedIds::new(settings));
        for (pod, content) in files {
            match parse_mappings_file(&content) {
                Ok(ids) => {
                    allocated.record(pod.clone(), ids);
                    self.written.insert(pod);
                }
                Err(error) => self.unknown = Some((pod, error)),
            }
        }
    }

    fn allocate(
        &mut self,
        pod: &PodUid,
        settings: UserNamespaceSettings,
    ) -> Result<HostIds, UserNamespaceError> {
        let allocated = self.allocated.get_or_insert_with(|| AllocatedIds::new(settings));
        match (allocated.get(pod), &self.unknown) {
            (None, Some((pod, error))) => {
                let (pod, error) = (pod.clone(), error.clone());
                Err(UserNamespaceError::UnknownIds { pod, error })
            }
            _ => Ok(allocated.get_or_allocate(pod)?),
        }
    }

    fn forget(&mut self, pod: &PodUid) {
        self.allocated.iter_mut().for_each(|allocated| allocated.release(pod));
        self.written.remove(pod);
    }
}
