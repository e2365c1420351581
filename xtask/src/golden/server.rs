//! Runs etcd and kube-apiserver in a network namespace, and sends dry-run requests to them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use oarsman_rig::parts::kubernetes;

use super::processes::{ChildProcess, NetworkNamespace, run_to_end};

const ETCD: &str = "http://127.0.0.1:2379";
const SERVER: &str = "https://127.0.0.1:6443";
const TOKEN: &str = "golden";
/// Plugins that change pods or refuse them for reasons outside of the API.
const DISABLED_PLUGINS: &str = "DefaultTolerationSeconds,LimitRanger,NodeDeclaredFeatureValidator,\
    NodeRestriction,PodSecurity,PodTopologyLabels,Priority,ResourceQuota,RuntimeClass,\
    ServiceAccount,TaintNodesByCondition";
/// Fields that an API server keeps only when their gate is on. A node agent has to know them:
/// it may serve a cluster that uses them.
const GATES: &str = "ClusterTrustBundle=true,ClusterTrustBundleProjection=true,\
    ContainerStopSignals=true,PodCertificateRequest=true";
/// How often the server is asked whether it is ready, five seconds each.
const READY_ROUNDS: usize = 36;

/// The server's response: the HTTP status and the body.
pub(super) struct ServerResponse {
    pub(super) status: u16,
    pub(super) body: String,
}

/// A running API server without objects. Fields are dropped in the order they stand in.
pub(super) struct GoldenApiServer {
    server: ChildProcess,
    _etcd: ChildProcess,
    network: NetworkNamespace,
    directory: PathBuf,
}

impl GoldenApiServer {
    /// Starts etcd and the server and waits until it answers.
    pub(super) fn start(binary: &Path) -> Result<Self> {
        let etcd = kubernetes::ETCD.build()?;
        let directory = std::env::temp_dir().join(format!("oarsman-golden-{}", std::process::id()));
        fs::create_dir_all(&directory)
            .with_context(|| format!("making {}", directory.display()))?;
        let network = NetworkNamespace::make()?;
        let etcd = start_etcd(&network, &etcd, &directory)?;
        let server = start_server(&network, binary, &directory)?;
        let mut server = Self { server, _etcd: etcd, network, directory };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Sends a request to create the pod with `dryRun=All`.
    pub(super) fn create_dry(&self, manifest: &Path) -> Result<ServerResponse> {
        let path = "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=Strict";
        let data = format!("@{}", manifest.display());
        let output = self
            .curl(path)
            .args(["--max-time", "30", "--write-out", "\n%{http_code}"])
            .args(["--header", "Content-Type: application/yaml", "--data-binary", &data])
            .output()?;
        ensure!(output.status.success(), "curl ended with {}", output.status);
        let text = String::from_utf8(output.stdout)?;
        let (body, status) = text.rsplit_once('\n').context("curl told no HTTP status")?;
        Ok(ServerResponse { status: status.parse()?, body: body.to_owned() })
    }

    /// Ends the processes and removes their files; after a failure the files stay for inspection.
    pub(super) fn stop(self) -> Result<()> {
        let directory = self.directory.clone();
        drop(self);
        fs::remove_dir_all(&directory).with_context(|| format!("removing {}", directory.display()))
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let log = self.directory.join("kube-apiserver.log");
        for _ in 0..READY_ROUNDS {
            let mut curl = self.curl("/readyz");
            curl.args(["--fail", "--retry", "5", "--retry-delay", "1", "--retry-all-errors"])
                .args(["--output", "/dev/null"]);
            if curl.status()?.success() {
                return Ok(());
            }
            ensure!(!self.server.has_ended()?, "kube-apiserver ended; see {}", log.display());
        }
        bail!("kube-apiserver does not become ready; see {}", log.display())
    }

    fn curl(&self, path: &str) -> Command {
        let mut command = self.network.command(Path::new("curl"));
        command
            .args(["--silent", "--cacert"])
            .arg(self.directory.join("certificates/apiserver.crt"))
            .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
            .arg(format!("{SERVER}{path}"));
        command
    }
}

fn start_etcd(network: &NetworkNamespace, etcd: &Path, directory: &Path) -> Result<ChildProcess> {
    let mut command = network.command(etcd);
    command
        .arg("--data-dir")
        .arg(directory.join("etcd"))
        .args(["--listen-client-urls", ETCD, "--advertise-client-urls", ETCD])
        .args(["--listen-peer-urls", "http://127.0.0.1:2380"]);
    ChildProcess::start(&mut command, &directory.join("etcd.log"))
}

fn start_server(
    network: &NetworkNamespace,
    binary: &Path,
    directory: &Path,
) -> Result<ChildProcess> {
    let key = directory.join("service-accounts.key");
    run_to_end(Command::new("openssl").args(["genrsa", "-out"]).arg(&key).arg("2048"))?;
    let tokens = directory.join("tokens.csv");
    fs::write(&tokens, format!("{TOKEN},golden,golden,system:masters\n"))?;
    let mut command = network.command(binary);
    command
        .args(["--etcd-servers", ETCD, "--secure-port", "6443", "--bind-address", "127.0.0.1"])
        .args(["--authorization-mode", "AlwaysAllow", "--allow-privileged=true"])
        // No client comes from outside; the advertised address is one reserved for documentation.
        .args(["--advertise-address", "192.0.2.1", "--endpoint-reconciler-type", "none"])
        .args(["--service-cluster-ip-range", "10.0.0.0/24"])
        .args(["--service-account-issuer", SERVER])
        .args(["--disable-admission-plugins", DISABLED_PLUGINS, "--feature-gates", GATES])
        // The server writes its own certificate for loopback to this directory.
        .arg("--cert-dir")
        .arg(directory.join("certificates"))
        .arg("--token-auth-file")
        .arg(tokens)
        .arg("--service-account-key-file")
        .arg(&key)
        .arg("--service-account-signing-key-file")
        .arg(&key);
    ChildProcess::start(&mut command, &directory.join("kube-apiserver.log"))
}
