//! Reading the runtime's word on one pod.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use oarsman_core::ids::{FullName, PodUid};
use oarsman_core::labels::POD_UID_LABEL;
use oarsman_core::view::PodView;
use oarsman_core::view::from_cri;
use oarsman_cri::{CriError, Runtime};
use oarsman_cri_types::v1::{ContainerFilter, PodSandboxFilter};

/// All that the runtime holds of one pod. What vanishes while we read was never there.
pub(crate) async fn read(
    runtime: &dyn Runtime,
    uid: &PodUid,
    name: &FullName,
) -> Result<PodView, CriError> {
    let label_selector = BTreeMap::from([(POD_UID_LABEL.to_owned(), uid.to_string())]);
    let pods =
        PodSandboxFilter { label_selector: label_selector.clone(), ..PodSandboxFilter::default() };
    let containers = ContainerFilter { label_selector, ..ContainerFilter::default() };
    let (sandboxes, containers) = futures::try_join!(
        runtime.list_pod_sandboxes(Some(pods)),
        runtime.list_containers(Some(containers)),
    )?;
    let sandboxes = sandboxes
        .into_iter()
        .map(|sandbox| async move { unless_gone(runtime.pod_sandbox_status(&sandbox.id).await) });
    let containers = containers.into_iter().map(|container| async move {
        let status = unless_gone(runtime.container_status(&container.id).await)?;
        Ok(status.map(|status| (container, status)))
    });
    let (sandboxes, containers) =
        futures::try_join!(try_join_all(sandboxes), try_join_all(containers))?;
    let sandboxes: Vec<_> = sandboxes.into_iter().flatten().collect();
    let containers: Vec<_> = containers.into_iter().flatten().collect();
    let containers = containers.iter().map(|(listed, status)| (listed, status));
    Ok(from_cri::pod_view(uid.clone(), name.clone(), &sandboxes, containers))
}

fn unless_gone<T>(answer: Result<T, CriError>) -> Result<Option<T>, CriError> {
    match answer {
        Ok(status) => Ok(Some(status)),
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error),
    }
}
