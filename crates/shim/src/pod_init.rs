//! The first process of a pid namespace that the containers of a pod share: it waits for orphans, and does nothing else.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use oarsman_host::namespaces::{self, NamespaceKind};
use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{
    DumpableBehavior, Gid, Uid, WaitOptions, chdir, fchdir, pivot_root, set_dumpable_behavior, wait,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space, set_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::shim;
use crate::user_namespace::become_root;

/// The call that starts it inside of a user namespace.
pub(crate) const INSIDE: &str = "init-inside";
/// The user of the pause images.
const NOBODY: u32 = 65535;

/// Waits for children for ever.
///
/// Containers of the pod see this process: its root directory is an empty one, its program is mounted read-only, it has no rights, and cannot be
/// traced.
pub(crate) fn run() -> io::Result<()> {
    namespaces::die_with_parent()?;
    rustix::thread::set_name(c"oarsman-pause")?;
    leave_files()?;
    set_thread_groups(&[])?;
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // A change of user takes the death signal away.
    namespaces::die_with_parent()?;
    reap_for_ever()
}

/// Starts it as the first process of a new pid namespace, for which this process makes one.
pub(crate) fn spawn() -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("oarsman-pause").args([shim::ARGUMENT, "init"]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Starts it in a pid namespace that belongs to a user namespace, tells its pid, and lives as long as it does: a process cannot leave a user
/// namespace again, so that the shim cannot do this itself.
pub(crate) fn run_inside(user_namespace: &Path) -> io::Result<()> {
    namespaces::die_with_parent()?;
    let namespace = File::open(user_namespace)?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::User))?;
    become_root()?;
    namespaces::enter_new(&[NamespaceKind::Pid])?;
    let mut init = spawn()?;
    writeln!(io::stdout(), "{}", init.id())?;
    init.wait().map(drop)
}

fn reap_for_ever() -> io::Result<()> {
    let (mut ended, signalled) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, signalled)?;
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        match ended.read(&mut [0; 64]) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Goes into a mount namespace that has an empty directory and nothing else.
fn leave_files() -> io::Result<()> {
    namespaces::enter_new(&[NamespaceKind::Mount])?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let empty = Path::new("/proc");
    namespaces::cover_with_empty(empty)?;
    let old = open("/", OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    chdir(empty)?;
    pivot_root(".", ".")?;
    fchdir(old.as_fd())?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}
