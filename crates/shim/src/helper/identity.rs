//! Takes away from this process what a container's process shall not have.

use std::io;

use oci_spec::runtime::{LinuxCapabilities, Process, User};
use rustix::fs::{FileType, fchown, fstat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use crate::capabilities;

/// The five sets of a process, as far as they are held.
#[derive(Clone, Copy, Debug)]
struct WantedCapabilities {
    bounding: CapabilitySet,
    effective: CapabilitySet,
    permitted: CapabilitySet,
    inheritable: CapabilitySet,
    ambient: CapabilitySet,
}

impl WantedCapabilities {
    /// A process without a list of capabilities has none.
    fn of(process: &Process) -> io::Result<Self> {
        let held = capabilities::held()?;
        let listed = process.capabilities().as_ref();
        let set = |of: fn(&LinuxCapabilities) -> &Option<oci_spec::runtime::Capabilities>| {
            capabilities::numbered(listed.and_then(|listed| of(listed).as_ref()), held)
        };
        Ok(Self {
            bounding: set(LinuxCapabilities::bounding),
            effective: set(LinuxCapabilities::effective),
            permitted: set(LinuxCapabilities::permitted),
            inheritable: set(LinuxCapabilities::inheritable),
            ambient: set(LinuxCapabilities::ambient),
        })
    }
}

/// Makes this process the process's user with its groups and capabilities, in an order in which each step is still allowed.
pub(super) fn assume(process: &Process) -> io::Result<()> {
    let wanted = WantedCapabilities::of(process)?;
    give_streams(process.user())?;
    drop_bounding(wanted.bounding)?;
    set_keep_capabilities(true)?;
    set_user(process.user())?;
    set_keep_capabilities(false)?;
    let WantedCapabilities { effective, permitted, inheritable, .. } = wanted;
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?;
    clear_ambient_capability_set()?;
    // The kernel takes only those that are permitted and inheritable, too.
    for one in (wanted.ambient & permitted & inheritable).iter() {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

fn drop_bounding(keep: CapabilitySet) -> io::Result<()> {
    for number in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // The first number that the kernel does not know ends the list.
        let Ok(is_there) = capability_is_in_bounding_set(one) else { break };
        if is_there && !keep.contains(one) {
            remove_capability_from_bounding_set(one)?;
        }
    }
    Ok(())
}

fn set_user(user: &User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid()), Gid::from_raw(user.gid()));
    let groups = user.additional_gids().iter().flatten().map(|gid| Gid::from_raw(*gid));
    set_thread_groups(&groups.collect::<Vec<_>>())?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

/// A process that opens `/dev/stdout` anew has to own the pipe or terminal behind it.
///
/// In a user namespace only a terminal can be given away: it was made there. The helper has given pipes away before ([`give_pipes`]).
fn give_streams(user: &User) -> io::Result<()> {
    match give(user.uid(), |kind| kind == FileType::Fifo || kind == FileType::CharacterDevice) {
        Err(Errno::PERM | Errno::INVAL) => Ok(()),
        result => Ok(result?),
    }
}

/// Gives our pipes to the user that a container's user is outside of its user namespace.
pub(super) fn give_pipes(uid: u32) -> io::Result<()> {
    Ok(give(uid, |kind| kind == FileType::Fifo)?)
}

fn give(uid: u32, is_given: impl Fn(FileType) -> bool) -> rustix::io::Result<()> {
    for stream in [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()] {
        let Ok(stat) = fstat(stream) else { continue };
        let kind = FileType::from_raw_mode(stat.st_mode);
        // /dev/null is everybody's.
        let is_device = kind == FileType::CharacterDevice && !rustix::termios::isatty(stream);
        if is_given(kind) && !is_device && stat.st_uid != uid {
            fchown(stream, Some(Uid::from_raw(uid)), None)?;
        }
    }
    Ok(())
}
