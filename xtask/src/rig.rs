//! `cargo xtask rig`: runs a command beside a containerd of the rig, in namespaces of their own, for machines that have no runtime. And beside a
//! control plane, on request.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use oarsman_rig::parts::kubernetes;
use oarsman_rig::{
    ControlPlane, Implementation, Kubelet, KubeletOptions, Rig, RigOptions, namespace,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{SignalKind, signal};

/// The variable by which crictl and `oarsman run` find a runtime.
const ENDPOINT: &str = "CONTAINER_RUNTIME_ENDPOINT";

/// Runs a command and exits with its code. Directories that [`namespace::SHARED`] names are the same for it as outside.
pub(crate) fn run(command: &[OsString], with_cluster: bool) -> ExitCode {
    let ready = || if with_cluster { prepare_cluster() } else { Ok(()) };
    namespace::run_after(ready, || match inside(command, with_cluster) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("rig: {error:#}");
            ExitCode::FAILURE
        }
    })
}

fn prepare_cluster() -> Result<()> {
    kubernetes::prepare(&kubernetes::CONTROL_PLANE)?;
    kubernetes::prepare(&[kubernetes::KUBELET])
}

#[tokio::main]
async fn inside(command: &[OsString], with_cluster: bool) -> Result<ExitCode> {
    let (program, arguments) = command.split_first().context("name a command to run")?;
    let rig = Rig::start(RigOptions::default()).await?;
    let endpoint = format!("unix://{}", rig.socket().display());
    // containerd's default socket: inside of the namespaces no other containerd can be there.
    let usual = Path::new("/run/containerd");
    fs::create_dir_all(usual)?;
    symlink(rig.socket(), usual.join("containerd.sock"))?;
    eprintln!("rig: containerd is at {endpoint} for as long as this runs");
    let cluster = if with_cluster { Some(RigCluster::start(&rig).await?) } else { None };
    let mut command = Command::new(program);
    command.args(arguments).env(ENDPOINT, endpoint);
    if let Some(cluster) = &cluster {
        command.envs(cluster.environment(&rig)?);
        eprintln!("rig: the API server is at {}", cluster.plane.server());
    }
    let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    let status = wait_and_forward_signals(child).await;
    if let Some(cluster) = cluster {
        cluster.plane.stop()?;
    }
    rig.stop().await?;
    let code = status?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// A control plane, and the paths of a node agent that is still to be started.
struct RigCluster {
    plane: ControlPlane,
    node: Kubelet,
}

impl RigCluster {
    async fn start(rig: &Rig) -> Result<Self> {
        let plane = ControlPlane::start(rig).await?;
        let node = Kubelet::new(rig, &plane, &Implementation::Go, &KubeletOptions::default())?;
        Ok(Self { plane, node })
    }

    /// The environment that a command needs to use the cluster, and to start a node agent that joins it.
    fn environment(&self, rig: &Rig) -> Result<Vec<(&'static str, OsString)>> {
        let (plane, node) = (&self.plane, &self.node);
        let kubectl = kubernetes::KUBECTL.path()?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = kubectl.parent().map(Path::to_owned).into_iter();
        Ok(vec![
            ("KUBECONFIG", plane.admin_kubeconfig().into()),
            ("KUBECACHEDIR", rig.directory().join("kubectl-cache").into()),
            ("OARSMAN_RIG_AUTHORITY", plane.authority().into()),
            ("OARSMAN_RIG_BOOTSTRAP_KUBECONFIG", plane.bootstrap_kubeconfig()?.into()),
            ("OARSMAN_RIG_DIRECTORY", rig.directory().into()),
            ("OARSMAN_RIG_GO_KUBELET", kubernetes::KUBELET.path()?.into()),
            ("OARSMAN_RIG_KUBELET_CONFIG", node.config().into()),
            ("OARSMAN_RIG_KUBELET_FLAGS", node.arguments().join(" ").into()),
            ("OARSMAN_RIG_MANIFESTS", node.manifests().path().into()),
            ("OARSMAN_RIG_NODE_ADDRESS", plane.node_address().to_string().into()),
            ("OARSMAN_RIG_NODE_KUBECONFIG", plane.kubeconfig_of_node(node.name())?.into()),
            ("OARSMAN_RIG_SERVER", plane.server().into()),
            ("PATH", std::env::join_paths(own.chain(std::env::split_paths(&path)))?),
        ])
    }
}

/// Waits for a child and forwards SIGINT and SIGTERM to it.
async fn wait_and_forward_signals(mut child: std::process::Child) -> Result<ExitStatus> {
    let pid = Pid::from_child(&child);
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        let passed_on = tokio::select! {
            status = &mut ended => return Ok(status??),
            _ = interrupt.recv() => kill_process(pid, Signal::INT),
            _ = terminate.recv() => kill_process(pid, Signal::TERM),
        };
        // A child that has just ended cannot be signalled.
        passed_on.ok();
    }
}
