//! Runs a Kubernetes control plane for node agents to join.
//!
//! etcd, an API server with the Node and RBAC authorizers and NodeRestriction, a controller manager and a scheduler, all on the
//! rig's own node address. There is no proxy for services: their addresses lead nowhere.

mod address;
mod bootstrap_objects;
mod certificates;
mod kubeconfig;
mod kubectl;
mod metrics_server;
mod programs;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::Signal;

use crate::clock;
use crate::process::ManagedProcess;
use crate::rig::Rig;
use crate::run::make_directory;
use crate::signals;

use address::NodeAddress;
pub use certificates::CertificateFiles;
use certificates::{CertificateAuthority, token_key};
use kubeconfig::{ClientIdentity, kubeconfig};
pub use kubectl::Kubectl;
pub use metrics_server::MetricsServer;
use programs::ComponentOptions;

/// The range of services' addresses, and its first one, which is the API server's.
const SERVICES: &str = "10.96.0.0/16";
const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
const API_PORT: u16 = 6443;
/// The issuer and the audience of service account tokens.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The group of cluster administrators.
const MASTERS: &str = "system:masters";
/// The name by which the API server is known to servers of aggregated APIs.
const AGGREGATOR: &str = "front-proxy-client";
/// How many lines of each log an error carries.
const TAIL_LINES: usize = 12;
/// How long each program may take to come up on a busy machine.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// A running control plane. All that it started ends with it. Fields are dropped in the order they stand in.
pub struct ControlPlane {
    scheduler: ManagedProcess,
    controller_manager: ManagedProcess,
    api_server: ManagedProcess,
    etcd: ManagedProcess,
    kubelet_client: CertificateFiles,
    authority: CertificateAuthority,
    kubectl: Kubectl,
    directory: PathBuf,
    address: NodeAddress,
}

impl ControlPlane {
    /// Starts one beside a rig, and waits until pods can be created.
    ///
    /// # Errors
    /// When a program was not prepared or does not come up; the error carries the end of its log.
    pub async fn start(rig: &Rig) -> Result<Self> {
        let directory = rig.directory().join("control-plane");
        make_directory(&directory)?;
        let address = NodeAddress::create(rig.layout().number())?;
        let authority = CertificateAuthority::create(&directory)?;
        let plane = Self::assemble(directory, address, authority)?;
        plane.etcd.start()?;
        plane.start_api_server().await?;
        // Both would end if the API server did not answer when they start.
        plane.controller_manager.start()?;
        plane.scheduler.start()?;
        plane.kubectl.apply(&bootstrap_objects::objects()).await?;
        let account = clock::wait_until_async(MAX_WAIT, || plane.has_default_account()).await?;
        ensure!(account, "nobody makes service accounts:\n{}", plane.log_tails());
        Ok(plane)
    }

    fn assemble(
        directory: PathBuf,
        address: NodeAddress,
        authority: CertificateAuthority,
    ) -> Result<Self> {
        let common = ComponentOptions {
            address: address.get().to_string(),
            authority: authority.files(),
            token_key: token_key(&directory)?,
            directory: directory.clone(),
        };
        let own = authority.write("apiserver", &authority.server(address.get())?)?;
        let to_kubelets = authority.client("kube-apiserver-kubelet-client", MASTERS)?;
        let to_kubelets = authority.write("apiserver-kubelet-client", &to_kubelets)?;
        let to_aggregated = authority.client(AGGREGATOR, AGGREGATOR)?;
        let to_aggregated = authority.write(AGGREGATOR, &to_aggregated)?;
        let config = |file: &str, user: &str, group: &str| {
            let pair = authority.client(user, group)?;
            write_kubeconfig(
                &directory,
                file,
                &address,
                &authority,
                &ClientIdentity::Certificate(&pair),
            )
        };
        let admin = config("admin", "kubernetes-admin", MASTERS)?;
        // Without the administrator's rights it would need an account for each of its controllers, and seconds to get them.
        let controllers = config("controller-manager", "system:kube-controller-manager", MASTERS)?;
        let scheduler = config("scheduler", "system:kube-scheduler", "system:kube-scheduler")?;
        Ok(Self {
            scheduler: common.scheduler(&scheduler)?,
            controller_manager: common.controller_manager(&controllers)?,
            api_server: common.api_server(&own, &to_kubelets, &to_aggregated)?,
            etcd: common.etcd()?,
            kubelet_client: to_kubelets,
            kubectl: Kubectl::new(&admin)?,
            authority,
            directory,
            address,
        })
    }

    /// The URL of the API server.
    pub fn server(&self) -> String {
        server(&self.address)
    }

    /// The address of the node, which is the API server's, too.
    pub fn node_address(&self) -> Ipv4Addr {
        self.address.get()
    }

    /// The link that has the node's address.
    pub fn node_link(&self) -> &str {
        self.address.link()
    }

    /// The certificate of the authority that signs all clients and servers of this cluster.
    pub fn authority(&self) -> PathBuf {
        self.authority.files().certificate
    }

    /// The certificate with which the API server asks kubelets; it may ask for everything.
    pub fn kubelet_client(&self) -> &CertificateFiles {
        &self.kubelet_client
    }

    /// kubectl as cluster administrator.
    pub fn admin(&self) -> &Kubectl {
        &self.kubectl
    }

    /// The kubeconfig of the cluster administrator.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        path_of(&self.directory, "admin")
    }

    /// The kubeconfig of a node: `system:node:<name>` in `system:nodes`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_of_node(&self, name: &str) -> Result<PathBuf> {
        self.kubeconfig_of(&format!("node-{name}"), &format!("system:node:{name}"), "system:nodes")
    }

    /// The same with a certificate that is valid for this long, and has been for nine times as long.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_of_node_lasting(&self, name: &str, rest: Duration) -> Result<PathBuf> {
        let pair =
            self.authority.expiring_client(&format!("system:node:{name}"), "system:nodes", rest)?;
        self.write(&format!("node-{name}-lasting"), &ClientIdentity::Certificate(&pair))
    }

    /// The kubeconfig of any user in a group.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_of(&self, file: &str, user: &str, group: &str) -> Result<PathBuf> {
        let pair = self.authority.client(user, group)?;
        self.write(file, &ClientIdentity::Certificate(&pair))
    }

    /// The certificate of any user in a group, for requests to kubelets.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn client_certificate(
        &self,
        file: &str,
        user: &str,
        group: &str,
    ) -> Result<CertificateFiles> {
        self.authority.write(file, &self.authority.client(user, group)?)
    }

    /// The kubeconfig of a node without a certificate, which may only request one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn bootstrap_kubeconfig(&self) -> Result<PathBuf> {
        self.write("bootstrap", &ClientIdentity::Token(&bootstrap_objects::bootstrap_token()))
    }

    fn write(&self, file: &str, identity: &ClientIdentity<'_>) -> Result<PathBuf> {
        write_kubeconfig(&self.directory, file, &self.address, &self.authority, identity)
    }

    /// A client as cluster administrator.
    ///
    /// # Errors
    /// Never, as long as the kubeconfig is there.
    pub async fn client(&self) -> Result<kube::Client> {
        client(&self.admin_kubeconfig()).await
    }

    /// Kills the API server. What it has stored stays.
    ///
    /// # Errors
    /// When it does not run.
    pub fn stop_api_server(&self) -> Result<()> {
        self.api_server.kill()
    }

    /// Sends SIGSTOP to the API server: it can be connected to, and does not answer.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause_api_server(&self) -> Result<()> {
        signals::send(self.api_server.pid()?, Signal::STOP);
        Ok(())
    }

    /// Lets a paused API server go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume_api_server(&self) -> Result<()> {
        signals::send(self.api_server.pid()?, Signal::CONT);
        Ok(())
    }

    /// Starts the API server on what is stored, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not come up; the error carries the end of its log.
    pub async fn start_api_server(&self) -> Result<()> {
        self.api_server.start()?;
        let ready = clock::wait_until_async(MAX_WAIT, || self.is_ready()).await?;
        ensure!(ready, "the API server does not become ready; it says:\n{}", self.log_tails());
        // These end when they lose it for long; an administrator would have them started again.
        for process in [&self.controller_manager, &self.scheduler] {
            if process.log().exists() && !process.is_alive() {
                process.start()?;
            }
        }
        Ok(())
    }

    async fn is_ready(&self) -> Result<bool> {
        for process in [&self.etcd, &self.api_server] {
            process.pid()?;
        }
        // Polled: an API server that is not up yet refuses connections.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let asked = self.kubectl.run_for(MAX_WAIT, &["get", "--raw=/readyz"], None).await;
        Ok(asked.is_ok_and(|answer| answer == "ok"))
    }

    async fn has_default_account(&self) -> Result<bool> {
        self.controller_manager.pid()?;
        let asked = self.kubectl.run(&["get", "serviceaccount", "default", "--output=name"]).await;
        Ok(asked.is_ok())
    }

    /// Waits until the node of that name is Ready.
    ///
    /// # Errors
    /// When it does not become so in time; with its object.
    pub async fn until_node_is_ready(&self, name: &str, max_wait: Duration) -> Result<()> {
        let condition = r#"{.status.conditions[?(@.type=="Ready")].status}"#;
        let output = format!("--output=jsonpath={condition}");
        let look = || async {
            let asked = self.kubectl.run(&["get", "node", name, &output]).await;
            Ok(asked.is_ok_and(|status| status == "True"))
        };
        if clock::wait_until_async(max_wait, look).await? {
            return Ok(());
        }
        let known = self.kubectl.run(&["describe", "node", name]).await;
        bail!("the node {name} is not Ready after {max_wait:?}: {known:?}")
    }

    /// The pids of all its processes.
    pub fn pids(&self) -> Vec<u32> {
        self.processes().iter().filter_map(|process| process.pid().ok()).collect()
    }

    /// The ends of all logs.
    pub fn log_tails(&self) -> String {
        let each = self.processes().map(|process| {
            format!("{} ends:\n{}\n", process.log().display(), process.log_end(TAIL_LINES))
        });
        each.concat()
    }

    fn processes(&self) -> [&ManagedProcess; 4] {
        [&self.etcd, &self.api_server, &self.controller_manager, &self.scheduler]
    }

    /// Ends everything and removes its files.
    ///
    /// # Errors
    /// When the files cannot be removed.
    pub fn stop(self) -> Result<()> {
        let directory = self.directory.clone();
        drop(self);
        let cannot = || format!("cannot remove {}", directory.display());
        fs::remove_dir_all(&directory).with_context(cannot)
    }
}

/// A client with the identity of a kubeconfig.
///
/// # Errors
/// When it cannot be read.
pub async fn client(kubeconfig: &Path) -> Result<kube::Client> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

fn server(address: &NodeAddress) -> String {
    format!("https://{}:{API_PORT}", address.get())
}

fn path_of(directory: &Path, file: &str) -> PathBuf {
    directory.join(format!("{file}.kubeconfig"))
}

fn write_kubeconfig(
    directory: &Path,
    file: &str,
    address: &NodeAddress,
    authority: &CertificateAuthority,
    identity: &ClientIdentity<'_>,
) -> Result<PathBuf> {
    let path = path_of(directory, file);
    fs::write(&path, kubeconfig(&server(address), &authority.pem(), identity))?;
    Ok(path)
}
