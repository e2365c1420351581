//! Details for people, as `crictl inspect` shows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use oarsman_cri::InfoTarget;
use serde_json::{Value, json};

use crate::error::Outcome;
use crate::inner::RuntimeInner;
use crate::records::StoredContainer;

/// The topic under which crictl looks.
const TOPIC: &str = "info";

impl RuntimeInner {
    pub(crate) async fn info(
        self: Arc<Self>,
        about: InfoTarget<'_>,
    ) -> Outcome<BTreeMap<String, String>> {
        let details = match about {
            InfoTarget::Container(id) => self.container_info(id).await?,
            InfoTarget::Sandbox(id) => {
                let (record, _) = self.sandbox(id)?;
                json!({ "cgroupParent": record.cgroup_parent, "shim": self.directory.shim(id).path() })
            }
            InfoTarget::Runtime | InfoTarget::Image(_) => return Ok(BTreeMap::new()),
        };
        Ok([(TOPIC.to_owned(), details.to_string())].into())
    }

    /// With the names that containerd uses.
    async fn container_info(self: &Arc<Self>, id: &str) -> Outcome<Value> {
        let (record, _) = self.container(id)?;
        let pid = self.pid(&record).await.unwrap_or_default();
        let spec = self.read_spec(id).await?;
        Ok(json!({ "sandboxID": record.sandbox, "pid": pid, "runtimeSpec": spec }))
    }

    /// The first process of a container that runs.
    async fn pid(&self, record: &StoredContainer) -> Option<u32> {
        if !record.is_running() {
            return None;
        }
        let reports = self.shim(&record.sandbox).list().await.ok()?;
        reports.into_iter().find(|report| report.container == record.id)?.pid
    }
}
