//! Components that are Go modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::tools::output;
use super::{PartsCache, workspace};

/// Programs of one Go module at one version.
pub(super) struct GoPart {
    name: &'static str,
    module: &'static str,
    version: &'static str,
    packages: &'static [&'static str],
    tags: &'static str,
}

pub(super) const CONTAINERD: GoPart = GoPart {
    name: "containerd",
    module: "github.com/containerd/containerd/v2",
    version: "v2.4.2",
    packages: &["cmd/containerd", "cmd/containerd-shim-runc-v2", "cmd/ctr"],
    tags: "",
};

pub(super) const RUNC: GoPart = GoPart {
    name: "runc",
    module: "github.com/opencontainers/runc",
    version: "v1.5.2",
    packages: &[""],
    tags: "seccomp",
};

pub(super) const CNI: GoPart = GoPart {
    name: "cni-plugins-with-bandwidth",
    module: "github.com/containernetworking/plugins",
    version: "v1.9.1",
    packages: &[
        "plugins/main/bridge",
        "plugins/main/loopback",
        "plugins/ipam/host-local",
        "plugins/meta/bandwidth",
        "plugins/meta/portmap",
    ],
    tags: "",
};

/// Scrapes kubelets for `kubectl top` and the autoscaler.
pub(super) const METRICS_SERVER: GoPart = GoPart {
    name: "metrics-server",
    module: "sigs.k8s.io/metrics-server",
    version: "v0.9.0",
    packages: &["cmd/metrics-server"],
    tags: "",
};

const CRI_API: &str = "k8s.io/cri-api@v0.36.3";

impl GoPart {
    /// The directory of the programs.
    pub(super) fn install(&self, cache: &PartsCache) -> Result<PathBuf> {
        let part = format!("{}-{}-{}", self.name, self.version, go_version()?);
        Ok(cache.part(&part, |directory| self.build(directory))?.join("bin"))
    }

    fn build(&self, directory: &Path) -> Result<()> {
        let packages = self.packages.iter().map(|package| match *package {
            "" => format!("{}@{}", self.module, self.version),
            package => format!("{}/{package}@{}", self.module, self.version),
        });
        let mut command = go_command();
        command.args(["install", "-tags", self.tags]).args(packages);
        command.env("GOBIN", directory.join("bin")).env("CGO_ENABLED", "1");
        output(&mut command).map(drop)
    }
}

/// A copy of the upstream description of CRI v1.
pub(super) fn cri_proto(cache: &PartsCache) -> Result<PathBuf> {
    let part = cache.part(&CRI_API.replace(['/', '@'], "-"), |directory| {
        let answer = output(go_command().args(["mod", "download", "-json", CRI_API]))?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let module = answer["Dir"].as_str().context("go named no directory")?;
        let source = Path::new(module).join("pkg/apis/runtime/v1/api.proto");
        fs::copy(source, directory.join("api.proto"))?;
        Ok(())
    })?;
    Ok(part.join("api.proto"))
}

/// The program that tells how Go judges the subjects of client certificates. It is ours and uses Go's standard library alone.
pub(super) fn client_names(cache: &PartsCache) -> Result<PathBuf> {
    let source = workspace().join("testing/rig/go/client-names/main.go");
    let text = fs::read(&source).with_context(|| source.display().to_string())?;
    let hash: String =
        Sha256::digest(&text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let part = cache.part(&format!("client-names-{hash}-{}", go_version()?), |directory| {
        let mut command = go_command();
        command.args(["build", "-o"]).arg(directory.join("client-names")).arg(&source);
        output(command.env("CGO_ENABLED", "0")).map(drop)
    })?;
    Ok(part.join("client-names"))
}

/// The version that `go version` prints.
pub(super) fn go_version() -> Result<String> {
    output(go_command().args(["env", "GOVERSION"]))
}

/// Runs go outside of our modules, and without environment variables that the caller has for a module.
pub(super) fn go_command() -> Command {
    let mut command = Command::new("go");
    command.current_dir("/").env_remove("GOFLAGS").env("GOWORK", "off");
    command
}
