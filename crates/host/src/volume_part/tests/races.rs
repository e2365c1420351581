//! A container swaps components of a path for links while the path is mounted (CVE-2021-25741).

use std::ffi::{CStr, c_int, c_long};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

const TRIES: u32 = 10_000;
/// So often it is looked whether a process is in its user namespace.
const MAX_LOOKS: u32 = 10_000_000;

/// What a mount allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MountKind {
    Plain,
    ReadOnly,
    Idmapped,
}

impl MountKind {
    /// A copy of the mount at a path, with what sets this kind apart.
    fn of(self, path: impl rustix::path::Arg, users: &UserNamespace) -> io::Result<OwnedFd> {
        let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = open_tree(CWD, path, clone)?;
        match self {
            Self::Plain => {}
            Self::ReadOnly => set_attributes(&tree, MOUNT_ATTR_RDONLY, None)?,
            Self::Idmapped => set_attributes(&tree, MOUNT_ATTR_IDMAP, Some(users))?,
        }
        Ok(tree)
    }
}

const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
const SYS_MOUNT_SETATTR: c_long = 442;
const AT_EMPTY_PATH: c_int = 0x1000;

#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    users: u64,
}

/// rustix has no mount_setattr.
fn set_attributes(tree: &OwnedFd, set: u64, users: Option<&UserNamespace>) -> io::Result<()> {
    #[expect(unsafe_code, reason = "a system call that no crate of ours has")]
    // SAFETY: the C library declares it so.
    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }
    let users = users.map_or(0, |users| u64::try_from(users.1.as_raw_fd()).unwrap());
    let attributes = MountAttributes { set, clear: 0, propagation: 0, users };
    let (empty, tree): (&CStr, c_int) = (c"", tree.as_raw_fd());
    #[expect(unsafe_code, reason = "the compiler cannot check a call of C")]
    // SAFETY: both pointers are to values that live until the call returns, and the size is that of the second.
    let answer = unsafe {
        syscall(
            SYS_MOUNT_SETATTR,
            tree,
            empty.as_ptr(),
            AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A user namespace in which root is user 100000 of the machine, as that of a pod with `hostUsers: false`.
struct UserNamespace(Child, fs::File);

impl UserNamespace {
    fn new() -> Self {
        let mut command = Command::new("unshare");
        let process = command.args(["--user", "sleep", "300"]).stdin(Stdio::null()).spawn();
        let process = process.unwrap();
        let directory = PathBuf::from(format!("/proc/{}", process.id()));
        let own = fs::read_link("/proc/self/ns/user").unwrap();
        let is_own = || fs::read_link(directory.join("ns/user")).unwrap() == own;
        let made = (0..MAX_LOOKS).any(|_| {
            thread::yield_now();
            !is_own()
        });
        assert!(made, "no user namespace was made");
        for map in ["uid_map", "gid_map"] {
            fs::write(directory.join(map), "0 100000 65536\n").unwrap();
        }
        let namespace = fs::File::open(directory.join("ns/user")).unwrap();
        Self(process, namespace)
    }
}

impl Drop for UserNamespace {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Swaps two names until it is told to stop.
fn swap(a: &Path, b: &Path, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
    }
}

/// A component of the path is a directory now, and then a link to `/` or to a directory beside the volume. The container swaps them in the
/// files of the volume, which the agent sees through a mount of one kind, and the runtime shows to the container through one of another.
fn race(volume: MountKind, shown: MountKind) {
    let (fixture, users) = (Fixture::new(), UserNamespace::new());
    let (files, outside) = (fixture.0.path().join("files"), fixture.0.path().join("outside"));
    fs::create_dir_all(files.join("a/etc")).unwrap();
    fs::create_dir(files.join("b")).unwrap();
    fs::create_dir_all(outside.join("etc")).unwrap();
    symlink("/", files.join("link")).unwrap();
    symlink("../outside", files.join("climb")).unwrap();
    let tree = volume.of(files.as_path(), &users).unwrap();
    let empty_path = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&tree, c"", CWD, fixture.volume(), empty_path).unwrap();
    let forbidden = [inode(Path::new("/etc")), inode(&outside), inode(&outside.join("etc"))];
    let (stop, mut mounted, mut refused) = (AtomicBool::new(false), 0, 0);
    thread::scope(|threads| {
        threads.spawn(|| swap(&files.join("a"), &files.join("link"), &stop));
        threads.spawn(|| swap(&files.join("b"), &files.join("climb"), &stop));
        for number in 0..TRIES {
            let part = if number % 2 == 0 { "a/etc".to_owned() } else { format!("b/n{number}") };
            let reached = fixture.mount(&part).and_then(|()| {
                // As the runtime does next: it takes what is mounted there into the container.
                let found = fs::File::from(shown.of(fixture.point().as_path(), &users)?);
                let found = found.metadata()?;
                Ok((found.dev(), found.ino()))
            });
            match reached {
                Ok(reached) => {
                    mounted += 1;
                    if forbidden.contains(&reached) {
                        stop.store(true, Ordering::Relaxed);
                    }
                    assert!(!forbidden.contains(&reached), "{part} of a {volume:?} volume");
                }
                Err(_) => refused += 1,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["etc"], "nothing was made outside");
    assert!(mounted > 0 && refused > 0, "{mounted} mounted, {refused} refused");
}

#[test]
fn no_swap_of_a_component_for_a_link_ever_leads_out_of_the_volume() {
    race(MountKind::Plain, MountKind::Plain);
}

#[test]
fn none_leads_out_of_a_read_only_volume() {
    race(MountKind::ReadOnly, MountKind::ReadOnly);
}

#[test]
fn none_leads_out_of_an_idmapped_volume() {
    race(MountKind::Idmapped, MountKind::Plain);
}

#[test]
fn none_leads_out_of_a_part_that_is_idmapped_for_its_pod() {
    race(MountKind::Plain, MountKind::Idmapped);
}
