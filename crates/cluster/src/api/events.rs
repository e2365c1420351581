//! Events of pods at a real API server: created once, and counted from then on.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use oarsman_core::event::{EventKind, EventRecord};
use oarsman_core::event_queue::CountedEvent;
use serde_json::json;

use super::{ApiServer, FIELD_MANAGER, error};
use crate::Result;

#[cfg(test)]
mod tests;

/// The reporting component, as for the Go kubelet.
const COMPONENT: &str = "kubelet";

impl ApiServer {
    /// Creates an event, or updates its count if it has happened before.
    pub(super) async fn record_event(&self, counted: &CountedEvent) -> Result<()> {
        let event = of_pod(&self.node, counted);
        let namespace = &counted.pod.namespace;
        let object = format!("event {}", counted.record.name);
        let failed = |error: kube::Error| error::failed("the event", &object, &error);
        let has_happened_before = counted.record.count > 1;
        if has_happened_before && self.count(namespace, &event).await.map_err(failed)? {
            return Ok(());
        }
        self.create(namespace, &event).await.map_err(failed)
    }

    fn events_of(&self, namespace: &str) -> Api<Event> {
        Api::namespaced(self.events.clone(), namespace)
    }

    /// Says that an event has happened again; false when the API server has forgotten it.
    async fn count(&self, namespace: &str, event: &Event) -> kube::Result<bool> {
        let how =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let change = json!({
            "count": event.count,
            "lastTimestamp": event.last_timestamp,
            "message": event.message,
        });
        let name = event.metadata.name.as_deref().unwrap_or_default();
        match self.events_of(namespace).patch(name, &how, &Patch::Strategic(change)).await {
            Ok(_) => Ok(true),
            Err(error) if error::code(&error) == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, namespace: &str, event: &Event) -> kube::Result<()> {
        let how =
            PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match self.events_of(namespace).create(&how, event).await {
            Ok(_) => Ok(()),
            // It took it the last time, and the answer was lost.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// An event of a pod.
fn of_pod(node: &str, counted: &CountedEvent) -> Event {
    let CountedEvent { pod, uid, resource_version, event, record } = counted;
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name.clone()),
        namespace: Some(pod.namespace.clone()),
        uid: Some(uid.to_string()),
        resource_version: resource_version.clone(),
        field_path: event.field_path.clone(),
    };
    let reason = event.reason.to_string();
    object(node, &pod.namespace, about, (event.kind, reason), record.clone())
}

/// An event as an API object, reported by this node.
pub(super) fn object(
    node: &str,
    namespace: &str,
    about: ObjectReference,
    (kind, reason): (EventKind, String),
    record: EventRecord,
) -> Event {
    let kind = match kind {
        EventKind::Normal => "Normal",
        EventKind::Warning => "Warning",
    };
    Event {
        metadata: ObjectMeta {
            name: Some(record.name),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: about,
        type_: Some(kind.to_owned()),
        reason: Some(reason),
        message: Some(record.message),
        count: Some(record.count),
        first_timestamp: Some(Time(record.first)),
        last_timestamp: Some(Time(record.last)),
        source: Some(EventSource {
            component: Some(COMPONENT.to_owned()),
            host: Some(node.to_owned()),
        }),
        reporting_component: Some(COMPONENT.to_owned()),
        reporting_instance: Some(node.to_owned()),
        ..Event::default()
    }
}
