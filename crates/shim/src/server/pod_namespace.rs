//! The pid namespace that the containers of a pod share, and changes of their limits.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use libcgroups::common::{CgroupConfig, CgroupManager, ControllerOpt, create_cgroup_manager};
use oarsman_host::namespaces::with_new_pid_namespace;
use oci_spec::runtime::LinuxResources;

use super::{ReplyAddress, ShimServer};
use crate::protocol::{RefusalKind, ShimReply};
use crate::shim;

impl ShimServer {
    pub(super) fn pid_namespace(&mut self, to: ReplyAddress) {
        if self.pod_init.is_none() {
            match with_new_pid_namespace(spawn_init) {
                Ok(init) => self.pod_init = Some(init),
                Err(error) => {
                    let message = format!("cannot make a pid namespace: {error}");
                    return self.refuse(to, RefusalKind::Failed, message);
                }
            }
        }
        if let Some(init) = &self.pod_init {
            let pid = init.id();
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

fn spawn_init() -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("oarsman-pause").args([shim::ARGUMENT, "init"]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}
