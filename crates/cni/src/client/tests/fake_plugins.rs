//! A configuration directory, plugins that are scripts, and what they were called with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::CniPodArguments;
use crate::client::{AttachRequest, CniClient};
use crate::network::CniNetwork;
use crate::settings::CniSettings;

/// Writes down each call as one line: command, plugin, sandbox, and the configuration.
const JOURNAL: &str = r#"input=$(cat)
name=$(basename "$0")
printf '%s\t%s\t%s\t%s\n' "$CNI_COMMAND" "$name" "$CNI_CONTAINERID" "$input" >> "$HERE/journal"
"#;

/// Answers ADD with an address, and everything else with nothing.
pub(super) const GOOD: &str = r#"if [ "$CNI_COMMAND" = ADD ]; then
  echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"address":"10.1.0.2/24","interface":0}]}'
fi
"#;

/// A machine with plugins.
pub(super) struct FakePlugins {
    place: tempfile::TempDir,
}

/// A call that was written down.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeenCall {
    pub(super) command: String,
    pub(super) plugin: String,
    pub(super) sandbox: String,
    pub(super) input: Value,
}

impl FakePlugins {
    pub(super) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for directory in ["net.d", "bin"] {
            fs::create_dir(place.path().join(directory)).unwrap();
        }
        Self { place }
    }

    /// Installs a plugin that does this after it has written down its call.
    pub(super) fn install(&self, name: &str, script: &str) {
        let here = self.place.path().display();
        let text = format!("#!/bin/sh\nHERE={here}\n{JOURNAL}{script}");
        let path = self.place.path().join("bin").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Writes the configuration: a network of that version with these plugins.
    pub(super) fn configure(&self, version: &str, plugins: &[&str]) -> CniNetwork {
        let plugins: Vec<Value> = plugins.iter().map(|name| json!({ "type": name })).collect();
        let network = json!({ "cniVersion": version, "name": "net", "plugins": plugins });
        self.configure_as(&network)
    }

    pub(super) fn configure_as(&self, network: &Value) -> CniNetwork {
        let path = self.place.path().join("net.d/10-net.conflist");
        fs::write(path, network.to_string()).unwrap();
        CniNetwork::parse_list(network.to_string().as_bytes()).unwrap()
    }

    pub(super) fn remove_configuration(&self) {
        fs::remove_file(self.place.path().join("net.d/10-net.conflist")).unwrap();
    }

    pub(super) fn client(&self) -> CniClient {
        self.client_with(Duration::from_secs(60))
    }

    /// A client whose plugins have so long.
    pub(super) fn client_with(&self, deadline: Duration) -> CniClient {
        let settings = CniSettings {
            configuration: self.place.path().join("net.d"),
            plugins: vec![self.place.path().join("absent"), self.place.path().join("bin")],
            deadline,
            status_deadline: deadline,
        };
        CniClient::new(settings, &self.state())
    }

    /// Where the client keeps what it has to.
    pub(super) fn state(&self) -> PathBuf {
        self.place.path().join("state")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(super) fn calls(&self) -> Vec<SeenCall> {
        let journal = fs::read_to_string(self.place.path().join("journal")).unwrap_or_default();
        let call = |line: &str| {
            let mut fields = line.splitn(4, '\t').map(str::to_owned);
            let mut next = || fields.next().unwrap();
            let (command, plugin, sandbox) = (next(), next(), next());
            let sandbox = sandbox.replace(&self.suffix(), "");
            let input = serde_json::from_str(&next()).unwrap_or_default();
            SeenCall { command, plugin, sandbox, input }
        };
        journal.lines().map(call).collect()
    }

    /// The calls in short: `ADD one abc`.
    pub(super) fn short_calls(&self) -> Vec<String> {
        let calls = self.calls().into_iter();
        calls
            .map(|it| format!("{} {} {}", it.command, it.plugin, it.sandbox).trim_end().to_owned())
            .collect()
    }

    pub(super) fn forget_calls(&self) {
        fs::remove_file(self.place.path().join("journal")).unwrap();
    }

    /// The names of what is kept.
    pub(super) fn kept(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.state())
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|name| name.replace(&self.suffix(), ""))
            .collect();
        names.sort();
        names
    }

    /// The id of a sandbox, which tests that run at the same time do not share: plugins are ended by it.
    pub(super) fn id(&self, name: &str) -> String {
        format!("{name}{}", self.suffix())
    }

    fn suffix(&self) -> String {
        let place = self.place.path().file_name().unwrap_or_default();
        format!("-{}", place.display().to_string().replace('.', ""))
    }

    pub(super) fn request(&self, name: &str) -> AttachRequest {
        let sandbox = self.id(name);
        AttachRequest {
            namespace: format!("/run/netns/{sandbox}").into(),
            sandbox,
            pod: CniPodArguments {
                namespace: "default".to_owned(),
                name: "web".to_owned(),
                uid: "1".to_owned(),
                ..CniPodArguments::default()
            },
        }
    }
}
