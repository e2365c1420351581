//! Builds manifests of pods that run the script image.

use oarsman_rig::images;
use serde_json::{Map, Value, json};

/// A pod's manifest. JSON is YAML, too.
#[derive(Debug, Clone)]
pub struct PodManifest {
    pod: Value,
}

/// A container of a manifest.
#[derive(Debug, Clone)]
pub struct ContainerManifest {
    fields: Map<String, Value>,
}

/// A pod in the namespace `default`, without containers yet.
pub fn pod(name: &str) -> PodManifest {
    let metadata = json!({ "name": name, "namespace": "default" });
    let spec = json!({ "containers": [] });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec });
    PodManifest { pod }
}

/// A container that performs a script of `oarsman-script_container`.
pub fn script_container(name: &str, script: &[&str]) -> ContainerManifest {
    image(name, images::SCRIPT).with("args", script.into())
}

/// A container of any image, with its own entrypoint.
pub fn image(name: &str, image: &str) -> ContainerManifest {
    let fields = [("name", name), ("image", image)];
    ContainerManifest {
        fields: fields.map(|(key, value)| (key.to_owned(), value.into())).into_iter().collect(),
    }
}

impl ContainerManifest {
    /// Sets a field, such as `resources`, `lifecycle` or `env`.
    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.to_owned(), value);
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        push(&mut self.fields, "env", json!({ "name": name, "value": value }));
        self
    }

    /// Its fields.
    pub fn object(self) -> Value {
        self.fields.into()
    }

    /// Mounts one of the pod's volumes.
    #[must_use]
    pub fn mount(mut self, volume: &str, path: &str) -> Self {
        push(&mut self.fields, "volumeMounts", json!({ "name": volume, "mountPath": path }));
        self
    }
}

impl PodManifest {
    /// Adds a container.
    #[must_use]
    pub fn container(self, container: ContainerManifest) -> Self {
        self.add("containers", container.fields.into())
    }

    /// Adds an init container.
    #[must_use]
    pub fn init(self, container: ContainerManifest) -> Self {
        self.add("initContainers", container.fields.into())
    }

    /// Adds a volume that shows a directory or file of the host.
    #[must_use]
    pub fn host_path(self, name: &str, path: &str) -> Self {
        self.add("volumes", json!({ "name": name, "hostPath": { "path": path } }))
    }

    /// Adds to a list of the spec.
    #[must_use]
    pub fn add(mut self, list: &str, value: Value) -> Self {
        push(self.section("spec"), list, value);
        self
    }

    /// Sets a field of the spec, such as `restartPolicy` or `terminationGracePeriodSeconds`.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.section("spec").insert(field.to_owned(), value.into());
        self
    }

    /// Sets a field of the metadata, such as `labels` or `uid`.
    #[must_use]
    pub fn with_metadata(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.section("metadata").insert(field.to_owned(), value.into());
        self
    }

    /// The text for a file.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.pod)
    }

    fn section(&mut self, name: &str) -> &mut Map<String, Value> {
        let section = &mut self.pod[name];
        if !section.is_object() {
            *section = json!({});
        }
        match section {
            Value::Object(fields) => fields,
            _ => unreachable!("it was made an object just now"),
        }
    }
}

/// Adds to a list, which is made if it is not there.
fn push(fields: &mut Map<String, Value>, list: &str, value: Value) {
    let list = fields.entry(list).or_insert_with(|| json!([]));
    match list {
        Value::Array(items) => items.push(value),
        other => *other = json!([value]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_has_the_fields_that_were_set() {
        let main = script_container("main", &["exit:3"]).env("A", "b").mount("v", "/v");
        let init = script_container("first", &[]).with("restartPolicy", "Always".into());
        let manifest = pod("web").container(main).init(init).host_path("v", "/tmp/v");
        let manifest = manifest.with("restartPolicy", "Never").with_metadata("uid", "u1");
        let expected = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": "web", "namespace": "default", "uid": "u1" },
            "spec": {
                "containers": [{
                    "name": "main",
                    "image": images::SCRIPT,
                    "args": ["exit:3"],
                    "env": [{ "name": "A", "value": "b" }],
                    "volumeMounts": [{ "name": "v", "mountPath": "/v" }],
                }],
                "initContainers": [{
                    "name": "first", "image": images::SCRIPT, "args": [], "restartPolicy": "Always",
                }],
                "volumes": [{ "name": "v", "hostPath": { "path": "/tmp/v" } }],
                "restartPolicy": "Never",
            },
        });
        assert_eq!(serde_json::from_str::<Value>(&manifest.text()).unwrap(), expected);
    }
}
