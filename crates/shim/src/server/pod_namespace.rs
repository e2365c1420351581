//! The pid namespace that the containers of a pod share, and changes of their limits.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use libcgroups::common::{CgroupConfig, CgroupManager, ControllerOpt, create_cgroup_manager};
use oarsman_host::namespaces::with_new_pid_namespace;
use oci_spec::runtime::LinuxResources;

use super::{ReplyAddress, ShimServer};
use crate::protocol::{RefusalKind, ShimReply};
use crate::user_namespace::read_line;
use crate::{pod_init, shim};

/// How long the process that makes a pid namespace inside of a user namespace has to say that it is there.
const INSIDE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first process of the pod's pid namespace.
#[derive(Debug)]
pub(super) struct PodInit {
    /// Our child: that process, or the one that has made it inside of a user namespace, with which it dies.
    pub(super) child: Child,
    pid: u32,
}

impl ShimServer {
    pub(super) fn pid_namespace(&mut self, to: ReplyAddress, user_namespace: Option<&Path>) {
        if self.pod_init.is_none() {
            let made = match user_namespace {
                Some(user_namespace) => PodInit::spawn_inside(user_namespace),
                None => PodInit::spawn(),
            };
            match made {
                Ok(init) => self.pod_init = Some(init),
                Err(error) => {
                    let message = format!("cannot make a pid namespace: {error}");
                    return self.refuse(to, RefusalKind::Failed, message);
                }
            }
        }
        if let Some(init) = &self.pod_init {
            let pid = init.pid;
            self.reply(
                to,
                ShimReply::PidNamespace { pid, path: PathBuf::from(format!("/proc/{pid}/ns/pid")) },
            );
        }
    }

    pub(super) fn update(&mut self, to: ReplyAddress, id: &str, resources: &LinuxResources) {
        let Some(container) = self.containers.get(id).filter(|container| container.exit.is_none())
        else {
            return self.refuse_unknown(to, id);
        };
        let config = CgroupConfig {
            cgroup_path: container.cgroup.clone(),
            systemd_cgroup: false,
            container_name: id.to_owned(),
        };
        let options = ControllerOpt {
            resources,
            disable_oom_killer: false,
            oom_score_adj: None,
            freezer_state: None,
        };
        let result = create_cgroup_manager(config).map_err(|error| error.to_string());
        let result =
            result.and_then(|manager| manager.apply(&options).map_err(|error| error.to_string()));
        match result {
            Ok(()) => self.reply(to, ShimReply::Done),
            Err(error) => {
                let message = format!("cannot change the limits of container {id}: {error}");
                self.refuse(to, RefusalKind::Failed, message);
            }
        }
    }
}

impl PodInit {
    fn spawn() -> io::Result<Self> {
        let child = with_new_pid_namespace(pod_init::spawn)?;
        Ok(Self { pid: child.id(), child })
    }

    fn spawn_inside(user_namespace: &Path) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("oarsman-pause").args([shim::ARGUMENT, pod_init::INSIDE]).arg(user_namespace);
        command.env_clear().current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let said = child.stdout.take().map(|mut stdout| read_line(&mut stdout, INSIDE_TIMEOUT));
        match said.transpose()?.and_then(|said| said.parse().ok()) {
            Some(pid) => Ok(Self { child, pid }),
            None => {
                child.kill().unwrap_or_default();
                Err(io::Error::other("it could not be made inside of the pod's user namespace"))
            }
        }
    }
}
