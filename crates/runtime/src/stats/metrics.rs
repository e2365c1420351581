//! What containers and pods use, as metrics of CRI.

use std::sync::Arc;

use oarsman_core::stats::{CriMetricLabels, StatsDetail, cri_group_metrics, cri_interface_metrics};
use oarsman_cri_types::v1 as cri;

use crate::error::Outcome;
use crate::inner::RuntimeInner;
use crate::records::{SandboxPhase, StoredSandbox};

impl RuntimeInner {
    /// The metrics of all sandboxes that are ready, read in one pass.
    pub(crate) async fn sandbox_metrics(self: &Arc<Self>) -> Outcome<Vec<cri::PodSandboxMetrics>> {
        let sandboxes = self.ready_sandboxes();
        let containers = self.running_containers(|_| true);
        let groups = sandboxes.iter().map(|it| &it.cgroup_parent);
        let groups = groups.chain(containers.iter().map(|it| &it.cgroup));
        let groups = groups.map(|group| group.to_string_lossy().into_owned()).collect();
        let groups = self.read_groups(groups, StatsDetail::All).await?;
        let mut all = Vec::new();
        for sandbox in sandboxes {
            let group = sandbox.cgroup_parent.to_string_lossy();
            let labels = CriMetricLabels {
                cgroup: &group,
                id: &sandbox.id,
                namespace: &sandbox.namespace,
                pod: &sandbox.name,
                ..CriMetricLabels::default()
            };
            let mut metrics = Vec::new();
            if let Some(stats) = groups.get(&*group) {
                metrics.extend(cri_group_metrics(&labels, stats));
                let interfaces = self.interfaces(&sandbox).await.unwrap_or_default();
                metrics.extend(cri_interface_metrics(&labels, &interfaces, stats));
            }
            let own = containers.iter().filter(|it| it.sandbox == sandbox.id);
            let container_metrics = own.filter_map(|record| {
                let group = record.cgroup.to_string_lossy();
                let labels = CriMetricLabels {
                    container: &record.name,
                    cgroup: &group,
                    image: &record.image,
                    id: &record.id,
                    ..labels
                };
                let metrics = cri_group_metrics(&labels, groups.get(&*group)?);
                Some(cri::ContainerMetrics { container_id: record.id.clone(), metrics })
            });
            let container_metrics = container_metrics.collect();
            all.push(cri::PodSandboxMetrics {
                pod_sandbox_id: sandbox.id.clone(),
                metrics,
                container_metrics,
            });
        }
        Ok(all)
    }

    fn ready_sandboxes(&self) -> Vec<StoredSandbox> {
        let state = self.state.lock();
        let all = state.sandboxes.values().map(|entry| &entry.record);
        all.filter(|record| record.phase == SandboxPhase::Ready).cloned().collect()
    }
}
