//! Credential provider plugins that note each of their executions: one that answers, and one that fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

/// The registry that both are asked for.
pub(super) const REGISTRY: &str = "127.0.0.1:9";
pub(super) const ANSWERING: &str = "answering";
pub(super) const FAILING: &str = "failing";

/// The plugins' files.
pub(super) struct NotingPlugins {
    directory: PathBuf,
    config: PathBuf,
}

impl NotingPlugins {
    pub(super) fn write(directory: &Path) -> Result<Self> {
        let directory = directory.join("plugins");
        fs::create_dir_all(&directory)?;
        let answer = json!({
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse",
            "cacheKeyType": "Registry", "cacheDuration": "0s", "auth": {},
        });
        let note = |name: &str| format!("echo asked >> {}", noted(&directory, name).display());
        let programs = [
            (
                ANSWERING,
                format!("#!/bin/sh\ncat > /dev/null\n{}\necho '{answer}'\n", note(ANSWERING)),
            ),
            (FAILING, format!("#!/bin/sh\ncat > /dev/null\n{}\nexit 3\n", note(FAILING))),
        ];
        for (name, text) in &programs {
            let path = directory.join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        let entry = |name: &str| {
            json!({
                "name": name, "matchImages": [REGISTRY], "defaultCacheDuration": "0s",
                "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
            })
        };
        let config = json!({
            "apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
            "providers": [entry(ANSWERING), entry(FAILING)],
        });
        let path = directory.join("config.json");
        fs::write(&path, config.to_string())?;
        Ok(Self { directory, config: path })
    }

    pub(super) fn flags(&self) -> Vec<String> {
        vec![
            format!("--image-credential-provider-config={}", self.config.display()),
            format!("--image-credential-provider-bin-dir={}", self.directory.display()),
        ]
    }

    /// How often a plugin was executed.
    pub(super) fn executions(&self, name: &str) -> Result<f64> {
        let noted = fs::read_to_string(noted(&self.directory, name))?;
        Ok(noted.lines().count() as f64)
    }

    /// The hash of the configuration, by the system's own program: of its length in eight bytes, and of its bytes.
    pub(super) fn hash(&self) -> Result<String> {
        let bytes = fs::read(&self.config)?;
        let hashed = self.directory.join("hashed");
        fs::write(&hashed, [&(bytes.len() as u64).to_be_bytes()[..], &bytes].concat())?;
        let output = Command::new("sha256sum").arg(&hashed).output()?;
        let text = String::from_utf8(output.stdout)?;
        Ok(format!("sha256:{}", text.split(' ').next().context("it prints the sum")?))
    }
}

fn noted(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.executions"))
}
