//! Programs of Kubernetes, each built from the Go module registry when it is first needed.
//!
//! They take minutes to build, so the rig does not have them by default: a test passes those it needs to [`prepare`] outside of the namespaces,
//! where there is a network, and finds them inside by [`Program::path`].

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::go::{go_command, go_version};
use super::tools::output;
use super::{PartsCache, print_progress};

const VERSION: &str = "1.36.3";

/// A program of the module k8s.io/kubernetes, or of a module that it requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// The package it is built from.
    pub package: &'static str,
    /// Whether it is the tests of that package.
    pub is_test: bool,
}

/// The API server's store, in the version that it is tested with: Debian's is older and lacks watch progress requests, without which lists are
/// neither streamed nor served from the cache.
pub const ETCD: Program = Program::command("etcd", "go.etcd.io/etcd/server/v3");
/// The API server.
pub const API_SERVER: Program =
    Program::command("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver");
/// The controller manager, which makes pods of deployments, and much else.
pub const CONTROLLER_MANAGER: Program =
    Program::command("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager");
/// The scheduler.
pub const SCHEDULER: Program =
    Program::command("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler");
/// kubectl.
pub const KUBECTL: Program = Program::command("kubectl", "k8s.io/kubernetes/cmd/kubectl");
/// The Go kubelet, which our agent is compared with.
pub const KUBELET: Program = Program::command("kubelet", "k8s.io/kubernetes/cmd/kubelet");

/// The programs of a control plane, and kubectl.
pub const CONTROL_PLANE: [Program; 5] = [ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KUBECTL];

/// Modules that live inside the Kubernetes repository and carry its minor and patch version.
/// Its own go.mod replaces them by directories, which a module downloaded alone does not have.
const STAGING: [&str; 33] = [
    "api",
    "apiextensions-apiserver",
    "apimachinery",
    "apiserver",
    "cli-runtime",
    "client-go",
    "cloud-provider",
    "cluster-bootstrap",
    "code-generator",
    "component-base",
    "component-helpers",
    "controller-manager",
    "cri-api",
    "cri-client",
    "cri-streaming",
    "csi-translation-lib",
    "dynamic-resource-allocation",
    "endpointslice",
    "externaljwt",
    "kms",
    "kube-aggregator",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    "metrics",
    "mount-utils",
    "pod-security-admission",
    "sample-apiserver",
    "sample-cli-plugin",
    "sample-controller",
    "streaming",
];

/// Builds those of the programs that are not there yet. To be called where there is a network.
///
/// # Errors
/// With the end of a failed build's output.
pub fn prepare(programs: &[Program]) -> Result<()> {
    let cache = PartsCache::open()?;
    programs.iter().try_for_each(|program| program.install(&cache).map(drop))
}

impl Program {
    /// A program that is no test.
    pub const fn command(name: &'static str, package: &'static str) -> Self {
        Self { name, package, is_test: false }
    }

    /// Its path.
    ///
    /// # Errors
    /// When it was not prepared.
    pub fn path(&self) -> Result<PathBuf> {
        let path = PartsCache::open()?.directory.join(self.part()?).join(self.name);
        ensure!(
            path.exists(),
            "{} is not built: parts::kubernetes::prepare it before the namespaces are entered",
            self.name
        );
        Ok(path)
    }

    /// The same, after it was built if necessary.
    ///
    /// # Errors
    /// With the end of a failed build's output.
    pub fn build(&self) -> Result<PathBuf> {
        self.install(&PartsCache::open()?)
    }

    fn install(&self, cache: &PartsCache) -> Result<PathBuf> {
        let directory = cache.part(&self.part()?, |directory| {
            print_progress(&format!("building {} {VERSION}, which takes minutes", self.name));
            self.build_into(directory)
        })?;
        Ok(directory.join(self.name))
    }

    fn part(&self) -> Result<String> {
        Ok(format!("{}-v{VERSION}-{}", self.name, go_version()?))
    }

    fn build_into(&self, directory: &Path) -> Result<()> {
        let source = tempfile::tempdir()?;
        fs::write(source.path().join("go.mod"), go_mod()?)?;
        let mut command: Command = go_command();
        command.current_dir(source.path()).env("CGO_ENABLED", "0");
        // The tests of Kubernetes need not pass our vet.
        let test = ["test", "-c", "-vet=off"].as_slice();
        command.args(if self.is_test { test } else { &["build"] });
        command.args(["-mod=mod", "-trimpath", "-ldflags", &linker_flags(), "-o"]);
        command.arg(directory.join(self.name)).arg(self.package);
        output(&mut command).map(drop)
    }
}

/// Without symbols, and with the version that it prints.
fn linker_flags() -> String {
    let set = [
        ("gitVersion", format!("v{VERSION}")),
        ("gitMajor", "1".to_owned()),
        ("gitMinor", VERSION.split('.').nth(1).unwrap_or_default().to_owned()),
        ("gitTreeState", "clean".to_owned()),
    ];
    let each = set.map(|(name, value)| format!("-X k8s.io/component-base/version.{name}={value}"));
    format!("-s -w {}", each.join(" "))
}

fn go_mod() -> Result<String> {
    let staging = VERSION.replacen("1.", "0.", 1);
    let mut text = String::from("module oarsman.test/kubernetes\n\ngo 1.26.0\n\n");
    writeln!(text, "require k8s.io/kubernetes v{VERSION}\n\nreplace (")?;
    for name in STAGING {
        writeln!(text, "\tk8s.io/{name} => k8s.io/{name} v{staging}")?;
    }
    text.push_str(")\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modules_of_the_repository_are_taken_at_the_version_of_the_release() {
        let text = go_mod().unwrap();
        assert!(text.contains("\nrequire k8s.io/kubernetes v1.36.3\n"), "{text}");
        assert!(text.contains("\tk8s.io/kubelet => k8s.io/kubelet v0.36.3\n"), "{text}");
        assert!(linker_flags().contains("version.gitMinor=36 "), "{}", linker_flags());
    }
}
