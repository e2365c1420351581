//! Parts of volumes on real directories and real mounts.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use tempfile::{TempDir, tempdir};

use super::*;

mod races;

/// A volume, and a directory in which parts of it are mounted. Whatever is mounted goes with it.
struct Fixture(TempDir);

impl Fixture {
    fn new() -> Self {
        let directory = tempdir().unwrap();
        for name in ["volume", "mounts", "outside"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self(directory)
    }

    fn volume(&self) -> PathBuf {
        self.0.path().join("volume")
    }

    fn point(&self) -> PathBuf {
        self.0.path().join("mounts/0")
    }

    fn open(&self, part: &str) -> io::Result<VolumePart> {
        VolumePart::open(&self.volume(), Path::new(part), AbsoluteLinks::Refused)
    }

    fn mount(&self, part: &str) -> io::Result<()> {
        let mounts = RootDirectory::open(&self.0.path().join("mounts"))?;
        self.open(part)?.mount_at(&mounts, OsStr::new("0"))
    }

    /// How many mounts lie upon each other.
    fn mounted(&self) -> usize {
        let all = mounts::current().unwrap();
        all.iter().filter(|mount| mount.point == self.point()).count()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        for point in [self.point(), self.volume()] {
            while mounts::is_mount_point(&point).unwrap_or_default()
                && unmount(&point, UnmountFlags::NOFOLLOW).is_ok()
            {}
        }
    }
}

fn inode(path: &Path) -> (u64, u64) {
    let there = fs::metadata(path).unwrap();
    (there.dev(), there.ino())
}

#[test]
fn missing_directories_are_made_with_the_mode_and_group_of_the_volume() {
    let fixture = Fixture::new();
    let volume = fixture.volume();
    std::os::unix::fs::chown(&volume, None, Some(4321)).unwrap();
    fs::set_permissions(&volume, fs::Permissions::from_mode(0o2777)).unwrap();
    fs::create_dir(volume.join("there")).unwrap();
    fs::set_permissions(volume.join("there"), fs::Permissions::from_mode(0o700)).unwrap();
    fixture.open("./there/a//b").unwrap();
    for (path, mode) in [("there", 0o700), ("there/a", 0o2777), ("there/a/b", 0o2777)] {
        let found = fs::metadata(volume.join(path)).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{path}");
    }
    fixture.open("new/deep").unwrap();
    let found = fs::metadata(volume.join("new/deep")).unwrap();
    assert_eq!((found.permissions().mode() & 0o7777, found.gid()), (0o2777, 4321));
}

#[test]
fn links_are_followed_as_long_as_they_stay_in_the_volume() {
    let fixture = Fixture::new();
    let volume = fixture.volume();
    fs::create_dir_all(volume.join("..2026/key")).unwrap();
    symlink("..2026", volume.join("..data")).unwrap();
    symlink("..data/key", volume.join("key")).unwrap();
    symlink("../outside", volume.join("out")).unwrap();
    symlink("/", volume.join("root")).unwrap();
    symlink("nowhere", volume.join("dangling")).unwrap();
    symlink("circle", volume.join("circle")).unwrap();
    symlink("/proc/self/root", volume.join("magic")).unwrap();
    fs::write(volume.join("file"), "").unwrap();
    fixture.mount("key").unwrap();
    assert_eq!(inode(&fixture.point()), inode(&volume.join("..2026/key")));
    let rows = [
        ("out", "leads out of the volume"),
        ("out/new", "leads out of the volume"),
        ("root", "leads out of the volume"),
        ("root/etc", "leads out of the volume"),
        ("magic", "leads out of the volume"),
        ("dangling", "leads to nothing"),
        ("dangling/a", "leads to nothing"),
        ("circle", "in a circle"),
        ("file/a", "Not a directory"),
        ("../outside", "leads out of the volume"),
        ("a/../../outside/x", "Invalid argument"),
    ];
    for (part, why) in rows {
        let refused = fixture.open(part).unwrap_err().to_string();
        assert!(refused.contains(why), "{part}: {refused}");
    }
    assert_eq!(fs::read_dir(fixture.0.path().join("outside")).unwrap().count(), 0);
}

#[test]
fn absolute_links_of_the_host_count_if_they_lead_into_the_volume() {
    let fixture = Fixture::new();
    let volume = fixture.volume();
    fs::create_dir_all(volume.join("real/deep")).unwrap();
    symlink(volume.join("real"), volume.join("link")).unwrap();
    symlink(&volume, volume.join("self")).unwrap();
    symlink(fixture.0.path().join("outside"), volume.join("out")).unwrap();
    let open = |part: &str, links| VolumePart::open(&volume, Path::new(part), links);
    for (part, real) in [("link/deep", "real/deep"), ("self", ".")] {
        assert!(open(part, AbsoluteLinks::Refused).is_err(), "{part}");
        let opened = open(part, AbsoluteLinks::Followed).unwrap();
        let found = stat(&opened.0, OsStr::new("")).unwrap();
        assert_eq!(found.stx_ino, inode(&volume.join(real)).1, "{part}");
    }
    let refused = open("out", AbsoluteLinks::Followed).unwrap_err().to_string();
    assert_eq!(refused, "a symbolic link leads out of the volume");
}

#[test]
fn a_part_is_mounted_once_and_replaced_when_it_is_another() {
    let fixture = Fixture::new();
    let volume = fixture.volume();
    for _ in 0..3 {
        fixture.mount("data").unwrap();
        assert_eq!(fixture.mounted(), 1);
    }
    fs::write(volume.join("data/f"), "written").unwrap();
    assert_eq!(fs::read_to_string(fixture.point().join("f")).unwrap(), "written");
    // Another directory under the same name, as when a volume was restored: the mount of the old one is not kept.
    fs::rename(volume.join("data"), volume.join("old")).unwrap();
    fixture.mount("data").unwrap();
    assert_eq!((fixture.mounted(), inode(&fixture.point())), (1, inode(&volume.join("data"))));
    // A file where there was a directory, and the other way round.
    fs::remove_dir(volume.join("data")).unwrap();
    fs::write(volume.join("data"), "a file").unwrap();
    fixture.mount("data").unwrap();
    assert_eq!(fs::read_to_string(fixture.point()).unwrap(), "a file");
    fs::remove_file(volume.join("data")).unwrap();
    fixture.mount("data").unwrap();
    assert!(fixture.point().is_dir() && fixture.mounted() == 1);
}

#[test]
fn a_mount_point_that_was_left_by_a_kill_is_used() {
    let fixture = Fixture::new();
    fs::write(fixture.volume().join("file"), "text").unwrap();
    fs::write(fixture.point(), "").unwrap();
    fixture.mount("data").unwrap();
    assert!(fixture.point().is_dir());
    fixture.mount("file").unwrap();
    assert_eq!(fs::read_to_string(fixture.point()).unwrap(), "text");
}
