//! A pod's volumes.

use k8s_openapi::api::core::v1::{PodSpec, Volume};
use serde_json::Value;

use super::page::Page;

pub(super) fn list(page: &mut Page, spec: &PodSpec) {
    let volumes = spec.volumes.clone().unwrap_or_default();
    if volumes.is_empty() {
        return;
    }
    page.within("Volumes", |page| {
        for volume in &volumes {
            page.within(&volume.name, |page| one(page, volume));
        }
    });
}

/// Whatever kind of volume it is: its one field besides the name, with all that is in it.
fn one(page: &mut Page, volume: &Volume) {
    let Ok(Value::Object(fields)) = serde_json::to_value(volume) else { return };
    for (kind, settings) in fields.iter().filter(|(field, _)| *field != "name") {
        page.field("Type", kind);
        for (name, value) in settings.as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            page.field(name, &text);
        }
    }
}
