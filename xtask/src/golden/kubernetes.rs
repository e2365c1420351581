//! kube-apiserver, built once from the Go module registry and kept in the cache.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::processes::run_to_end;

const VERSION: &str = "1.36.3";
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

/// The path of kube-apiserver; builds it, which takes minutes, when the cache has none.
pub(super) fn apiserver() -> Result<PathBuf> {
    let home = cache_root()?.join("rig").join(format!("kubernetes-v{VERSION}-{}", go_version()?));
    let binary = home.join("bin/kube-apiserver");
    if !binary.exists() {
        println!("building {}; this takes minutes", binary.display());
        build(&home, &binary)?;
    }
    Ok(binary)
}

fn cache_root() -> Result<PathBuf> {
    if let Some(root) = std::env::var_os("OARSMAN_CACHE") {
        return Ok(PathBuf::from(root));
    }
    let home = std::env::var_os("HOME").context("set HOME, or OARSMAN_CACHE to a directory")?;
    Ok(PathBuf::from(home).join(".cache/oarsman"))
}

fn go_version() -> Result<String> {
    let output = Command::new("go").args(["env", "GOVERSION"]).output();
    let output = output.context("running go: install a Go toolchain to build kube-apiserver")?;
    ensure!(output.status.success(), "`go env GOVERSION` failed");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn build(home: &Path, binary: &Path) -> Result<()> {
    let source = home.join("src");
    fs::create_dir_all(&source).with_context(|| format!("making {}", source.display()))?;
    fs::write(source.join("go.mod"), go_mod()?)?;
    let version = format!("-X k8s.io/component-base/version.gitVersion=v{VERSION}");
    let mut command = Command::new("go");
    command
        .current_dir(&source)
        .args(["build", "-mod=mod", "-trimpath", "-ldflags", &format!("-s -w {version}"), "-o"])
        .arg(binary)
        .arg("k8s.io/kubernetes/cmd/kube-apiserver")
        .env("CGO_ENABLED", "0");
    run_to_end(&mut command)
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
