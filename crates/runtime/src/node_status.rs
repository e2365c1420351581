//! What the runtime says of itself: whether it is ready, and what it can do.

use std::sync::Arc;
use std::time::Duration;

use oarsman_cri_types::v1 as cri;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::inner::RuntimeInner;

/// The first kernel that mounts the layers of images for other users: one that is older can have user namespaces, but no root file systems in them.
const USER_NAMESPACES: (u32, u32) = (5, 19);
/// The first kernel that makes a mount read-only with all that is mounted below it.
const RECURSIVE_READ_ONLY: (u32, u32) = (5, 12);
/// A disk that does not answer by then says nothing against the runtime.
const LOOK: Duration = Duration::from_secs(2);

fn condition(kind: &str, obstacle: Option<(&str, String)>) -> cri::RuntimeCondition {
    let (r#type, status) = (kind.to_owned(), obstacle.is_none());
    let (reason, message) = obstacle.unwrap_or_default();
    cri::RuntimeCondition { r#type, status, reason: reason.to_owned(), message }
}

impl RuntimeInner {
    pub(crate) async fn status(self: &Arc<Self>) -> cri::StatusResponse {
        let mut conditions = vec![self.runtime_condition().await, condition("NetworkReady", None)];
        conditions.extend(self.traffic_obstacles().await);
        cri::StatusResponse {
            status: Some(cri::RuntimeStatus { conditions }),
            runtime_handlers: self.shown_handlers(self.own_features()),
            features: Some(cri::RuntimeFeatures {
                supplemental_groups_policy: true,
                ..cri::RuntimeFeatures::default()
            }),
            ..cri::StatusResponse::default()
        }
    }

    /// Without its directory a runtime would make pods that the next one does not know.
    async fn runtime_condition(self: &Arc<Self>) -> cri::RuntimeCondition {
        let look = self.on_files("status", |inner| Ok(inner.lock.check()));
        let found = timeout(LOOK, look).await;
        let obstacle = match found {
            Ok(Ok(Err(error))) => {
                let root = self.settings.root.display();
                let fix = "put the directory back, then start the runtime again";
                Some((
                    "StateDirectoryReplaced",
                    format!("{root} is not what it was: {error}; {fix}"),
                ))
            }
            _ => None,
        };
        condition("RuntimeReady", obstacle)
    }

    fn own_features(&self) -> cri::RuntimeHandlerFeatures {
        cri::RuntimeHandlerFeatures {
            recursive_read_only_mounts: self.kernel >= RECURSIVE_READ_ONLY,
            user_namespaces: self.kernel >= USER_NAMESPACES,
        }
    }

    /// Details for people, as `crictl info` shows them.
    pub(crate) fn node_info(&self) -> Value {
        let (major, minor) = self.kernel;
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "root": self.settings.root,
            "program": self.settings.program,
            "handlers": self.settings.handlers.iter().map(|it| (it.name.clone(), json!(it.program))).collect::<serde_json::Map<_, _>>(),
            "kernel": format!("{major}.{minor}"),
            "bootID": self.boot_id,
            "cgroups": {
                "unified": self.abilities.is_unified,
                "swap": self.abilities.swap,
                "hugepages": self.abilities.hugepages,
            },
            "hostChanges": self.host_changes.lock().iter().map(|change| {
                let (setting, reason) = (&change.setting, change.reason);
                json!({ "setting": setting, "before": change.before, "now": change.now, "reason": reason })
            }).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_does_not_hold_has_a_reason() {
        let well = condition("RuntimeReady", None);
        assert_eq!((well.status, well.reason.as_str()), (true, ""));
        let ill = condition("RuntimeReady", Some(("Broken", "it is".to_owned())));
        assert_eq!(
            (ill.status, ill.reason.as_str(), ill.message.as_str()),
            (false, "Broken", "it is")
        );
    }
}
