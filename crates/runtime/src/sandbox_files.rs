//! Files, mounts and namespaces of a sandbox. All of this blocks.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use oarsman_cri_types::v1::{NamespaceMode, PodSandboxConfig};
use oarsman_host::thread_namespaces;
use oarsman_pod_network::{
    HostChange, HostPort, NamespaceKind, PortProtocol, SandboxNetworkRequest,
};
use oarsman_shim::user_namespace::{InnerKind, InnerNamespaces, UserNamespaceProcess};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::error::{EmbeddedRuntimeError, Outcome, failed};
use crate::inner::RuntimeInner;
use crate::oci::SpecError;
use crate::oci::mounts::PodFileMounts;
use crate::oci::namespaces::JoinableNamespaces;
use crate::oci::resolv_conf;
use crate::oci::sysctls::{OwnNamespaces, PodSysctl, SysctlNamespace};
use crate::oci::user_namespace::PodUserNamespace;
use crate::records::StoredSandbox;
use crate::state_directory::{make_directory, remove_tree, write_json};

const NODE_RESOLV_CONF: &str = "/etc/resolv.conf";
const NODE_HOSTS: &str = "/etc/hosts";
const FILES: [(&str, &str); 3] =
    [("/etc/hosts", "hosts"), ("/etc/hostname", "hostname"), ("/etc/resolv.conf", "resolv.conf")];

impl StoredSandbox {
    pub(crate) fn own(&self) -> OwnNamespaces {
        let options = self.options();
        OwnNamespaces {
            network: options.network() != NamespaceMode::Node,
            ipc: options.ipc() != NamespaceMode::Node,
        }
    }

    /// User and group of the node that are root in the pod, when they are not the node's.
    pub(crate) fn root(&self) -> Option<(u32, u32)> {
        self.user_namespace.as_ref().and_then(PodUserNamespace::root)
    }

    fn own_hostname(&self) -> Option<&str> {
        Some(self.hostname.as_str()).filter(|name| !name.is_empty())
    }
}

impl RuntimeInner {
    /// Makes the directories of a sandbox, and its record.
    pub(crate) fn begin_sandbox_files(&self, record: &StoredSandbox) -> Outcome<()> {
        make_directory(&self.directory.sandbox(&record.id))?;
        make_directory(self.directory.shim(&record.id).path())?;
        write_json(&self.directory.sandbox_record(&record.id), record)
    }

    /// Makes what a sandbox needs beside its network and its shim.
    pub(crate) fn make_sandbox_files(
        &self,
        record: &StoredSandbox,
        config: &PodSandboxConfig,
        sysctls: &[PodSysctl],
    ) -> Outcome<()> {
        let place = self.directory.sandbox(&record.id);
        let write = |name: &str, text: &[u8]| {
            let path = place.join(name);
            fs::write(&path, text).map_err(failed("write", &path))?;
            let Some((uid, gid)) = record.root() else { return Ok(()) };
            std::os::unix::fs::chown(&path, Some(uid), Some(gid))
                .map_err(failed("give away", &path))
        };
        write("hostname", format!("{}\n", record.hostname).as_bytes())?;
        // What the node does not have, the pod does not have either.
        write("hosts", &fs::read(NODE_HOSTS).unwrap_or_default())?;
        let dns = config.dns_config.clone().unwrap_or_default();
        let resolv_conf = match resolv_conf::is_given(&dns) {
            true => resolv_conf::text(&dns).into_bytes(),
            false => fs::read(NODE_RESOLV_CONF).unwrap_or_default(),
        };
        write("resolv.conf", &resolv_conf)?;
        if !record.log_directory.as_os_str().is_empty() {
            fs::create_dir_all(&record.log_directory)
                .map_err(failed("make the log directory", &record.log_directory))?;
        }
        self.mount_shm(record)?;
        match &record.user_namespace {
            Some(users) => self.pin_in_user_namespace(record, users, sysctls),
            None => self.pin_namespaces(record),
        }
    }

    fn mount_shm(&self, record: &StoredSandbox) -> Outcome<()> {
        if !record.own().ipc {
            return Ok(());
        }
        let shm = self.directory.shm(&record.id);
        make_directory(&shm)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let (uid, gid) = record.root().unwrap_or((0, 0));
        let options = CString::new(format!("mode=1777,size=65536k,uid={uid},gid={gid}"));
        let options = options.map_err(io::Error::other).map_err(failed("mount at", &shm))?;
        mount("shm", &shm, "tmpfs", flags, options.as_c_str())
            .map_err(failed("mount shared memory at", &shm))
    }

    fn pin_namespaces(&self, record: &StoredSandbox) -> Outcome<()> {
        let own = record.own();
        // As with other runtimes, the host name follows the network.
        let kinds = [(own.ipc, NamespaceKind::Ipc), (own.network, NamespaceKind::Uts)];
        let kinds: Vec<_> = kinds.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect();
        Ok(self.network.pins().create(&record.id, &kinds, record.own_hostname())?)
    }

    /// The pod's root has rights only over namespaces that were made in its user namespace, and so all of them are, the network's too.
    fn pin_in_user_namespace(
        &self,
        record: &StoredSandbox,
        users: &PodUserNamespace,
        sysctls: &[PodSysctl],
    ) -> Outcome<()> {
        let own = record.own();
        let kinds = [
            (own.ipc, InnerKind::Ipc),
            (own.network, InnerKind::Uts),
            (own.network, InnerKind::Network),
        ];
        let kinds = kinds.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind).collect();
        let ipc = sysctls.iter().filter(|sysctl| sysctl.namespace == SysctlNamespace::Ipc);
        let inner = InnerNamespaces {
            kinds,
            hostname: record.own_hostname().filter(|_| own.network).map(str::to_owned),
            settings: ipc.map(|sysctl| (sysctl.path.clone(), sysctl.value.clone())).collect(),
        };
        let [uids, gids] = users.mappings().map_err(SpecError::from)?;
        let program = &self.settings.program;
        let process = UserNamespaceProcess::start(program, &uids, &gids, &inner);
        let process = process.map_err(failed("make namespaces by", program))?;
        let all = inner.kinds.iter().map(|inner| inner.kind()).chain([NamespaceKind::User]);
        for kind in all {
            self.network.pins().adopt(&record.id, kind, &process.namespace(kind))?;
        }
        Ok(())
    }

    /// Gives a sandbox its network, and sets its settings of the kernel.
    pub(crate) fn set_up_network(
        &self,
        record: &mut StoredSandbox,
        config: &PodSandboxConfig,
        sysctls: &[PodSysctl],
    ) -> Outcome<()> {
        if record.own().network {
            let ports = host_ports(config)?;
            let pod = record.pod();
            let request = SandboxNetworkRequest { sandbox: &record.id, pod: &pod, ports: &ports };
            let network = self.network.set_up(request)?;
            self.note_host_changes(network.host_changes);
            record.addresses = network.addresses;
        }
        self.set_sysctls(record, sysctls)
    }

    /// The administrator is to know what is not as it was before.
    pub(crate) fn note_host_changes(&self, changes: Vec<HostChange>) {
        for change in &changes {
            let detail = format!("from {} to {}", change.before, change.now);
            let (setting, reason) = (&change.setting, change.reason);
            tracing::info!(setting, detail, reason, "setting of the host changed");
        }
        self.host_changes.lock().extend(changes);
    }

    /// Those of IPC can be set only by the root of a user namespace where there is one, and have been.
    fn set_sysctls(&self, record: &StoredSandbox, sysctls: &[PodSysctl]) -> Outcome<()> {
        let sandbox = record.id.as_str();
        let is_set = |sysctl: &&PodSysctl| {
            record.user_namespace.is_some() && sysctl.namespace == SysctlNamespace::Ipc
        };
        for sysctl in sysctls.iter().filter(|sysctl| !is_set(sysctl)) {
            let kind = match sysctl.namespace {
                SysctlNamespace::Network => NamespaceKind::Network,
                SysctlNamespace::Ipc => NamespaceKind::Ipc,
            };
            let namespace = self.network.pins().open(sandbox, kind)?;
            let write = || fs::write(&sysctl.path, &sysctl.value);
            let written = thread_namespaces::in_existing(namespace.as_fd(), kind, write);
            written.and_then(|written| written).map_err(failed("set", &sysctl.path))?;
        }
        Ok(())
    }

    /// Removes the network, the namespaces and the mounts of a sandbox; fine when there are none. Its record stays.
    pub(crate) fn tear_down_sandbox(&self, id: &str) -> Outcome<()> {
        let network = self.network.tear_down(id).map_err(EmbeddedRuntimeError::from);
        let pins = self.network.pins().remove_all(id).map_err(EmbeddedRuntimeError::from);
        let shm = unmount_all(&self.directory.shm(id));
        network.and(pins).and(shm)
    }

    /// Removes the record of a sandbox that was torn down, with all files.
    pub(crate) fn remove_sandbox_files(&self, id: &str) -> Outcome<()> {
        remove_tree(self.directory.shim(id).path())?;
        remove_tree(&self.directory.sandbox(id))
    }

    /// What a container of the sandbox sees of it.
    pub(crate) fn pod_files(&self, record: &StoredSandbox, ipc: NamespaceMode) -> PodFileMounts {
        let place = self.directory.sandbox(&record.id);
        let source = |(path, file): (&'static str, &str)| (path, place.join(file));
        let shm = match ipc {
            NamespaceMode::Container => None,
            NamespaceMode::Node => Some(PathBuf::from("/dev/shm")),
            NamespaceMode::Pod | NamespaceMode::Target => Some(self.directory.shm(&record.id)),
        };
        PodFileMounts { files: FILES.map(source).to_vec(), shm }
    }

    /// The sandbox's namespaces; that of processes is the shim's.
    pub(crate) fn joinable(&self, record: &StoredSandbox) -> Outcome<JoinableNamespaces> {
        let own = record.own();
        let path = |wanted: bool, kind| {
            wanted.then(|| self.network.pins().path(&record.id, kind)).transpose()
        };
        Ok(JoinableNamespaces {
            network: path(own.network, NamespaceKind::Network)?,
            ipc: path(own.ipc, NamespaceKind::Ipc)?,
            uts: path(own.network, NamespaceKind::Uts)?,
            pid: None,
            user: path(record.user_namespace.is_some(), NamespaceKind::User)?,
        })
    }
}

fn host_ports(config: &PodSandboxConfig) -> Outcome<Vec<HostPort>> {
    use oarsman_cri_types::v1::Protocol;
    let invalid = |what: String| EmbeddedRuntimeError::Invalid(what);
    let mut ports = Vec::new();
    for mapping in config.port_mappings.iter().filter(|mapping| mapping.host_port != 0) {
        let number = |port: i32| {
            u16::try_from(port).map_err(|_| invalid(format!("there is no port {port}")))
        };
        let address = || {
            mapping
                .host_ip
                .parse()
                .map_err(|_| invalid(format!("the host IP {:?} is no address", mapping.host_ip)))
        };
        ports.push(HostPort {
            protocol: match mapping.protocol() {
                Protocol::Tcp => PortProtocol::Tcp,
                Protocol::Udp => PortProtocol::Udp,
                Protocol::Sctp => PortProtocol::Sctp,
            },
            host_ip: (!mapping.host_ip.is_empty()).then(address).transpose()?,
            host_port: number(mapping.host_port)?,
            pod_port: number(mapping.container_port)?,
        });
    }
    Ok(ports)
}

/// Detaches everything that is mounted at a directory; fine when there is nothing.
pub(crate) fn unmount_all(path: &Path) -> Outcome<()> {
    loop {
        match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            Err(error) => return Err(failed("unmount", path)(error)),
        }
    }
}
