//! One call of a plugin: its configuration on stdin, and its environment.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::error::CniOperation;
use crate::network::{CniNetwork, CniPlugin};
use crate::store::StoredAttachment;

/// Which attachments exist, for GC.
const VALID_ATTACHMENTS: &str = "cni.dev/valid-attachments";
/// The variables of ours that plugins get: what programs need to find others, and proxies and authorities on the way to an API server. What is
/// the agent's alone, such as systemd's sockets and credentials, is none of theirs.
const PASSED_ON: [&str; 14] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "TZ",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "XTABLES_LIBDIR",
];
/// For an agent that was started without one.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One call of a plugin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PluginCall<'a> {
    pub(crate) operation: CniOperation,
    pub(crate) network: &'a CniNetwork,
    pub(crate) plugin: &'a CniPlugin,
    /// What it is about, except for GC and STATUS.
    pub(crate) attachment: Option<&'a StoredAttachment>,
    /// What the plugin before has answered, or for CHECK and DEL what the last one has.
    pub(crate) previous: Option<&'a Map<String, Value>>,
    /// Sandboxes and their interfaces, for GC.
    pub(crate) valid: Option<&'a [(String, String)]>,
}

impl PluginCall<'_> {
    /// The plugin's own fields with what is known now. `capabilities` stays in it: libcni leaves it there, and plugins have only met that.
    pub(crate) fn input(&self) -> Vec<u8> {
        let mut fields = self.plugin.fields.clone();
        let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        set("cniVersion", self.network.version.as_str().into());
        set("name", self.network.name.as_str().into());
        if let Some(previous) = self.previous {
            set("prevResult", Value::Object(previous.clone()));
        }
        if let Some(config) = self.runtime_config() {
            set("runtimeConfig", Value::Object(config));
        }
        if let Some(valid) = self.valid {
            let one = |(id, name): &(String, String)| json!({ "containerID": id, "ifname": name });
            set(VALID_ATTACHMENTS, valid.iter().map(one).collect());
        }
        Value::Object(fields).to_string().into_bytes()
    }

    /// What the plugin wants to be told, if there is anything.
    fn runtime_config(&self) -> Option<Map<String, Value>> {
        let known = &self.attachment?.capabilities;
        let wanted = self.plugin.capabilities.iter();
        let told = wanted.filter_map(|name| Some((name.clone(), known.get(name)?.clone())));
        Some(told.collect::<Map<String, Value>>()).filter(|told| !told.is_empty())
    }

    /// All of the plugin's environment. `has_namespace` tells whether the pod's network namespace still exists.
    pub(crate) fn environment(
        &self,
        plugins: &[PathBuf],
        has_namespace: bool,
    ) -> Vec<(&'static str, OsString)> {
        let passed_on =
            PASSED_ON.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut all: Vec<(&'static str, OsString)> = vec![("PATH", PATH.into())];
        all.extend(passed_on);
        all.push(("CNI_COMMAND", self.operation.command().into()));
        all.push(("CNI_PATH", join(plugins)));
        if let Some(attachment) = self.attachment {
            let labels = attachment.labels.iter().map(|(name, value)| format!("{name}={value}"));
            let namespace = attachment.namespace.as_os_str().to_owned();
            all.push(("CNI_CONTAINERID", attachment.sandbox.clone().into()));
            all.push(("CNI_NETNS", if has_namespace { namespace } else { OsString::new() }));
            all.push(("CNI_IFNAME", attachment.interface.clone().into()));
            all.push(("CNI_ARGS", labels.collect::<Vec<_>>().join(";").into()));
        }
        all
    }
}

fn join(directories: &[PathBuf]) -> OsString {
    let names: Vec<&std::ffi::OsStr> = directories.iter().map(|path| path.as_os_str()).collect();
    names.join(":".as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::AttachmentPhase;

    fn network() -> CniNetwork {
        CniNetwork::parse_list(
            br#"{ "cniVersion": "1.1.0", "name": "net", "plugins": [
                { "type": "bridge", "name": "other", "bridge": "cni0" },
                { "type": "portmap", "capabilities": { "portMappings": true, "dns": false, "x": true } }
            ] }"#,
        )
        .unwrap()
    }

    fn attachment() -> StoredAttachment {
        let capabilities = json!({ "portMappings": [1], "dns": {}, "bandwidth": {} });
        StoredAttachment {
            sandbox: "abc".to_owned(),
            pod: "default/web".to_owned(),
            interface: "eth0".to_owned(),
            namespace: "/run/ns/abc".into(),
            labels: vec![("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())],
            capabilities: capabilities.as_object().unwrap().clone(),
            network: network().to_json(),
            result: None,
            phase: AttachmentPhase::Adding,
        }
    }

    fn call<'a>(network: &'a CniNetwork, number: usize) -> PluginCall<'a> {
        let plugin = &network.plugins[number];
        PluginCall {
            operation: CniOperation::Add,
            network,
            plugin,
            attachment: None,
            previous: None,
            valid: None,
        }
    }

    fn input(call: PluginCall<'_>) -> Value {
        serde_json::from_slice(&call.input()).unwrap()
    }

    #[test]
    fn a_plugin_gets_its_fields_and_the_capabilities_it_wants() {
        let (network, attachment) = (network(), attachment());
        let previous = json!({ "ips": [] }).as_object().unwrap().clone();
        let first = PluginCall { attachment: Some(&attachment), ..call(&network, 0) };
        let wanted =
            json!({ "cniVersion": "1.1.0", "name": "net", "type": "bridge", "bridge": "cni0" });
        assert_eq!(input(first), wanted);
        let second = PluginCall {
            attachment: Some(&attachment),
            previous: Some(&previous),
            ..call(&network, 1)
        };
        let wanted = json!({
            "cniVersion": "1.1.0", "name": "net", "type": "portmap",
            "capabilities": { "portMappings": true, "dns": false, "x": true },
            "runtimeConfig": { "portMappings": [1] }, "prevResult": { "ips": [] },
        });
        assert_eq!(input(second), wanted);
        let valid = [("abc".to_owned(), "eth0".to_owned())];
        let gc = PluginCall { valid: Some(&valid), ..call(&network, 0) };
        let wanted = json!([{ "containerID": "abc", "ifname": "eth0" }]);
        assert_eq!(input(gc)["cni.dev/valid-attachments"], wanted);
    }

    #[test]
    fn the_environment_has_nothing_of_the_agents_own() {
        let (network, attachment) = (network(), attachment());
        let plugins = ["/opt/cni/bin".into(), "/usr/lib/cni".into()];
        let call = PluginCall { attachment: Some(&attachment), ..call(&network, 0) };
        let of = |has_namespace| {
            let all = call.environment(&plugins, has_namespace);
            all.into_iter()
                .filter(|(name, _)| name.starts_with("CNI_"))
                .map(|(name, value)| format!("{name}={}", value.display()))
                .collect::<Vec<_>>()
        };
        let wanted = [
            "CNI_COMMAND=ADD",
            "CNI_PATH=/opt/cni/bin:/usr/lib/cni",
            "CNI_CONTAINERID=abc",
            "CNI_NETNS=/run/ns/abc",
            "CNI_IFNAME=eth0",
            "CNI_ARGS=A=1;B=2",
        ];
        assert_eq!(of(true), wanted);
        assert!(of(false).contains(&"CNI_NETNS=".to_owned()));
        let status = PluginCall { operation: CniOperation::Status, attachment: None, ..call };
        let names: Vec<&str> =
            status.environment(&plugins, false).into_iter().map(|(name, _)| name).collect();
        assert!(
            names
                .iter()
                .all(|name| PASSED_ON.contains(name) || ["CNI_COMMAND", "CNI_PATH"].contains(name))
        );
    }
}
