//! Locks on real files, also against other users of the machine and on a full disk.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::*;

/// The user that has no rights on any machine.
const UNPRIVILEGED: u32 = 65534;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// `flock` of util-linux, started by a user; ends with the test.
struct FlockProcess(Child);

impl FlockProcess {
    fn start(path: &Path, uid: u32) -> Self {
        let mut command = Command::new("flock");
        command.arg("--exclusive").arg(path).args(["sh", "-c", "echo held; exec cat"]);
        command.uid(uid).gid(uid).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Self(process)
    }
}

impl Drop for FlockProcess {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// A file system with room for one file of a page.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", directory.path(), "tmpfs", flags, c"size=4k,mode=0755").unwrap();
        Self(directory)
    }

    fn fill(&self) {
        let mut file = File::create(self.0.path().join("filler")).unwrap();
        assert!(std::iter::repeat_n([0; 4096], 4).any(|page| file.write_all(&page).is_err()));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(self.0.path(), UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_root_directory_has_one_agent_at_a_time() {
    let root = tempfile::tempdir().unwrap();
    let first = FileLock::of_root(root.path()).unwrap();
    let refused = FileLock::of_root(root.path()).unwrap_err().to_string();
    assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
    assert!(refused.contains("--root-dir"), "{refused}");
    assert_eq!(holder_of_root(root.path()), Some(format!("process {}", std::process::id())));
    drop(first);
    assert_eq!(holder_of_root(root.path()), None);
    FileLock::of_root(root.path()).unwrap();
}

#[test]
fn a_full_disk_does_not_stop_a_restart() {
    let disk = SmallDisk::mount();
    fs::write(disk.0.path().join(OF_ROOT), "").unwrap();
    disk.fill();
    let _lock = FileLock::of_root(disk.0.path()).unwrap();
    assert!(holder_of_root(disk.0.path()).is_some(), "the lock holds without the process id");
}

#[test]
fn a_read_only_disk_does_not_stop_a_restart() {
    let disk = SmallDisk::mount();
    fs::write(disk.0.path().join(OF_ROOT), "process 1\n").unwrap();
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount_remount(disk.0.path(), flags, c"").unwrap();
    let _lock = FileLock::of_root(disk.0.path()).unwrap();
    assert!(holder_of_root(disk.0.path()).is_some());
}

#[test]
fn directories_and_lock_files_are_closed_to_other_users() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("deep/root");
    drop(FileLock::of_root(&root).unwrap());
    assert_eq!(mode(&root), 0o750);
    assert_eq!(mode(&root.join(OF_ROOT)), 0o600);
    // A file of an older version was open to all.
    set_mode(&root.join(OF_ROOT), 0o644);
    drop(FileLock::of_root(&root).unwrap());
    assert_eq!(mode(&root.join(OF_ROOT)), 0o600);
}

#[test]
fn a_link_in_place_of_a_lock_is_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("target");
    symlink(&target, root.path().join(OF_ROOT)).unwrap();
    assert!(FileLock::of_root(root.path()).is_err());
    assert!(!target.exists());
}

#[test]
fn a_lock_that_an_unprivileged_user_holds_is_replaced() {
    let root = tempfile::tempdir().unwrap();
    set_mode(root.path(), 0o755);
    let path = root.path().join(OF_ROOT);
    fs::write(&path, "process 7\n").unwrap();
    set_mode(&path, 0o644);
    let _foreign = FlockProcess::start(&path, UNPRIVILEGED);
    assert_eq!(holder_of_root(root.path()), None, "no agent holds it");
    let lock = FileLock::of_root(root.path()).unwrap();
    assert_eq!(mode(&path), 0o600);
    let refused = FileLock::of_root(root.path()).unwrap_err().to_string();
    assert!(refused.contains("is held by another agent"), "{refused}");
    drop(lock);
    FileLock::of_root(root.path()).unwrap();
}

#[test]
fn a_lock_of_a_runtime_that_an_unprivileged_user_holds_is_replaced() {
    let path = Path::new(RUNTIMES).join("test_of_foreign.sock.lock");
    drop(FileLock::of_runtime("unix:///test/of/foreign.sock").unwrap());
    // As an older version left them.
    set_mode(Path::new(RUNTIMES), 0o755);
    set_mode(&path, 0o644);
    let foreign = FlockProcess::start(&path, UNPRIVILEGED);
    let lock = FileLock::of_runtime("unix:///test/of/foreign.sock");
    drop(foreign);
    lock.unwrap();
    assert_eq!((mode(Path::new(RUNTIMES)), mode(&path)), (0o700, 0o600));
    fs::read_dir(RUNTIMES).unwrap().for_each(|entry| {
        let path = entry.unwrap().path();
        if path.display().to_string().contains("test_of_foreign") {
            fs::remove_file(path).unwrap();
        }
    });
}

#[test]
fn a_lock_that_root_holds_is_respected() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join(OF_ROOT);
    fs::write(&path, "process 7\n").unwrap();
    let _other = FlockProcess::start(&path, 0);
    let refused = FileLock::of_root(root.path()).unwrap_err().to_string();
    assert!(refused.contains("(process 7)"), "{refused}");
}

#[test]
fn a_root_directory_of_another_user_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let foreign = above.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    chown(&foreign, Some(UNPRIVILEGED), None).unwrap();
    for root in [foreign.clone(), foreign.join("below")] {
        let refused = format!("{:#}", FileLock::of_root(&root).unwrap_err());
        assert!(refused.contains("belongs to user 65534"), "{refused}");
        assert!(refused.contains("chown"), "{refused}");
    }
    assert_eq!(fs::read_dir(&foreign).unwrap().count(), 0, "nothing was made there");
}

/// Row H13 of docs/security.md.
#[test]
fn a_root_directory_that_a_group_or_the_owner_of_one_above_can_exchange_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let [shared, foreign] = ["shared", "foreign"].map(|name| above.path().join(name));
    fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o770);
    FileLock::of_root(&shared).unwrap();
    chown(&shared, None, Some(UNPRIVILEGED)).unwrap();
    for root in [shared.clone(), shared.join("below")] {
        let refused = format!("{:#}", FileLock::of_root(&root).unwrap_err());
        assert!(refused.contains("chmod g-w"), "{refused}");
    }
    let ours = foreign.join("ours");
    fs::create_dir_all(ours.join("existing")).unwrap();
    chown(&foreign, Some(UNPRIVILEGED), None).unwrap();
    for root in [ours.join("existing"), ours.join("new")] {
        let refused = format!("{:#}", FileLock::of_root(&root).unwrap_err());
        assert!(refused.contains("belongs to user 65534"), "{refused}");
    }
    assert!(!ours.join("new").exists());
}

#[test]
fn a_root_directory_that_all_may_write_to_is_refused() {
    let above = tempfile::tempdir().unwrap();
    let open = above.path().join("open");
    fs::create_dir(&open).unwrap();
    set_mode(&open, 0o777);
    for root in [open.clone(), open.join("below")] {
        let refused = format!("{:#}", FileLock::of_root(&root).unwrap_err());
        assert!(refused.contains("chmod o-w"), "{refused}");
    }
    // Below /tmp a directory of ours is safe: the sticky bit keeps others from moving it.
    set_mode(&open, 0o1777);
    FileLock::of_root(&open.join("below")).unwrap();
    assert!(FileLock::of_root(&open).is_err(), "others can put files into the root itself");
}

/// Row H29 of docs/security.md.
#[test]
fn a_command_that_asks_for_the_holder_does_not_keep_an_agent_from_starting() {
    let root = tempfile::tempdir().unwrap();
    drop(FileLock::of_root(root.path()).unwrap());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                holder_of_root(root.path());
            }
        });
        let refused = (0..300).find_map(|_| FileLock::of_root(root.path()).err());
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(refused.is_none(), "{refused:?}");
    });
}
