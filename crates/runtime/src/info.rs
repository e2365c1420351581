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
            InfoTarget::Runtime => return Ok(topic("config", &self.node_info())),
            InfoTarget::Image(name) => self.image_info(name.to_owned()).await?,
        };
        Ok(topic(TOPIC, &details))
    }

    /// With the names of the image's own configuration.
    async fn image_info(self: &Arc<Self>, name: String) -> Outcome<Value> {
        let image = self.on_images("list", move |inner| inner.find_image(&name)).await?;
        let platform =
            json!({ "architecture": image.platform.architecture, "os": image.platform.os });
        let layers: Vec<_> = image.layers.iter().map(|layer| layer.diff_id.to_string()).collect();
        let config =
            json!({ "created": image.created, "config": image.config, "platform": platform });
        Ok(json!({ "imageSpec": config, "layers": layers }))
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

fn topic(name: &str, details: &Value) -> BTreeMap<String, String> {
    [(name.to_owned(), details.to_string())].into()
}
