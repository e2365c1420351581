//! The section of `oarsman describe` on a pod's volumes.

use k8s_openapi::api::core::v1::{PodSpec, Volume};
use serde_json::Value;

use super::field_writer::FieldWriter;

pub(super) fn list(writer: &mut FieldWriter, spec: &PodSpec) {
    let volumes = spec.volumes.clone().unwrap_or_default();
    if volumes.is_empty() {
        return;
    }
    writer.within("Volumes", |writer| {
        for volume in &volumes {
            writer.within(&volume.name, |writer| one(writer, volume));
        }
    });
}

/// Whatever kind of volume it is: its one field besides the name, with all that is in it.
fn one(writer: &mut FieldWriter, volume: &Volume) {
    let Ok(Value::Object(fields)) = serde_json::to_value(volume) else { return };
    for (kind, settings) in fields.iter().filter(|(field, _)| *field != "name") {
        writer.field("Type", kind);
        for (name, value) in settings.as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            writer.field(name, &text);
        }
    }
}
