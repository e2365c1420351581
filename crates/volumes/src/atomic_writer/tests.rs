//! Files replaced all at once, on a real directory.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use oarsman_core::cri_spec::PayloadFile;
use tempfile::{TempDir, tempdir};

use super::*;

pub(super) fn files(files: &[(&str, &str)]) -> Payload {
    let file = |text: &str| PayloadFile {
        bytes: text.as_bytes().into(),
        mode: 0o640,
        owner: None,
        keep: false,
    };
    files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect()
}

/// Everything in a directory, by name.
pub(super) fn names_in(directory: &Path) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let names = fs::read_dir(directory).unwrap().map(name);
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

struct WriterFixture(TempDir);

impl WriterFixture {
    fn new() -> Self {
        Self(tempdir().unwrap())
    }

    fn write(&self, wanted: &[(&str, &str)]) {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        write(&AtomicWriter { directory: self.0.path(), group: None, now }, &files(wanted))
            .unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.0.path().join(path)).unwrap()
    }

    /// Everything in the directory, by name.
    fn names(&self) -> Vec<String> {
        names_in(self.0.path())
    }

    fn data(&self) -> PathBuf {
        fs::read_link(self.0.path().join(DATA)).unwrap()
    }
}

#[test]
fn the_layout_is_that_of_the_go_kubelet() {
    let site = WriterFixture::new();
    site.write(&[("a", "1"), ("deep/b", "2"), ("deep/c", "3")]);
    let time = "..2027_01_15_08_00_00.0000000000";
    assert_eq!(site.names(), ["..2027_01_15_08_00_00.0000000000", DATA, "a", "deep"]);
    assert_eq!(site.data(), Path::new(time));
    let at = |name: &str| site.0.path().join(name);
    assert_eq!(fs::read_link(at("a")).unwrap(), Path::new("..data/a"));
    assert_eq!(fs::read_link(at("deep")).unwrap(), Path::new("..data/deep"));
    assert_eq!((site.read("a"), site.read("deep/c")), ("1".to_owned(), "3".to_owned()));
    let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("a"), mode("deep"), mode(time)), (0o640, 0o755, 0o755));
}

#[test]
fn unchanged_files_are_not_written_again() {
    let site = WriterFixture::new();
    site.write(&[("a", "1"), ("b/c", "2")]);
    let inode = || fs::metadata(site.0.path().join("a")).unwrap().ino();
    let before = (inode(), site.data());
    site.write(&[("a", "1"), ("b/c", "2")]);
    assert_eq!((inode(), site.data()), before);
    fs::remove_file(site.0.path().join("b")).unwrap();
    site.write(&[("a", "1"), ("b/c", "2")]);
    assert_eq!(site.read("b/c"), "2", "a name that is gone comes back");
}

#[test]
fn new_files_replace_the_old_ones_and_nothing_of_those_stays() {
    let site = WriterFixture::new();
    site.write(&[("a", "1"), ("gone", "2"), ("d/x", "3")]);
    let before = site.data();
    // What a writer that died left behind goes, too.
    fs::create_dir(site.0.path().join("..2001_01_01_00_00_00.1")).unwrap();
    symlink("nowhere", site.0.path().join(NEXT)).unwrap();
    site.write(&[("a", "2"), ("d", "was a directory")]);
    assert_ne!(site.data(), before);
    let time = site.data().display().to_string();
    assert_eq!(site.names(), [time.as_str(), DATA, "a", "d"]);
    assert_eq!((site.read("a"), site.read("d")), ("2".to_owned(), "was a directory".to_owned()));
    site.write(&[]);
    assert_eq!(site.names().len(), 2, "an empty volume has only its own things");
}

#[test]
fn links_inside_a_volume_do_not_reach_files_outside() {
    let (site, outside) = (WriterFixture::new(), tempdir().unwrap());
    let victim = outside.path().join("a");
    fs::write(&victim, "precious").unwrap();
    let plant = |name: &str, target: &Path| {
        let path = site.0.path().join(name);
        fs::remove_file(&path).ok();
        symlink(target, path).unwrap();
    };
    site.write(&[("a", "1"), ("b", "1")]);
    plant("a", &victim);
    plant("..2000_01_01_00_00_00.0", outside.path());
    plant(DATA, outside.path());
    site.write(&[("a", "2")]);
    assert_eq!(site.read("a"), "2");
    plant(DATA, Path::new("../outside"));
    plant("b", outside.path());
    site.write(&[("c", "3")]);
    let inner = site.0.path().join(site.data()).join("c");
    fs::remove_file(&inner).unwrap();
    symlink(&victim, &inner).unwrap();
    site.write(&[("c", "precious")]);
    assert!(!site.0.path().join(site.data()).join("c").is_symlink(), "a link is no file");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_file_whose_content_is_not_known_stays_as_it_is_and_is_not_made() {
    let site = WriterFixture::new();
    let write = |wanted: &Payload| {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        write(&AtomicWriter { directory: site.0.path(), group: None, now }, wanted).unwrap();
    };
    let mut wanted = files(&[("ca", "1"), ("token", "")]);
    wanted.get_mut("token").unwrap().keep = true;
    write(&wanted);
    assert!(!site.names().contains(&"token".to_owned()), "{:?}", site.names());
    site.write(&[("ca", "1"), ("token", "t0ken")]);
    let before = site.data();
    write(&wanted);
    assert_eq!(site.read("token"), "t0ken");
    assert_eq!(site.data(), before, "nothing is written");
    wanted.insert("ca".to_owned(), files(&[("ca", "2")])["ca"].clone());
    write(&wanted);
    assert_eq!((site.read("ca"), site.read("token")), ("2".to_owned(), "t0ken".to_owned()));
}

#[test]
fn a_write_that_fails_leaves_nothing_and_the_old_files_stay() {
    let site = WriterFixture::new();
    site.write(&[("a", "1")]);
    let before = site.names();
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let writer = AtomicWriter { directory: site.0.path(), group: None, now };
    for _ in 0..3 {
        write(&writer, &files(&[("a", "2"), ("a/b", "3")])).unwrap_err();
    }
    assert_eq!((site.names(), site.read("a")), (before, "1".to_owned()));
    // A directory where the next link should be cannot be replaced by it.
    fs::create_dir(site.0.path().join(NEXT)).unwrap();
    write(&writer, &files(&[("a", "2")])).unwrap_err();
    assert_eq!(site.names().len(), 4, "{:?}", site.names());
}

/// Row H10 of docs/security.md.
#[test]
fn files_that_another_write_has_put_there_meanwhile_are_not_removed() {
    let volume = tempdir().unwrap();
    let directory = volume.path();
    let writer = AtomicWriter { directory, group: None, now: Timestamp::UNIX_EPOCH };
    write(&writer, &files(&[("a", "1")])).unwrap();
    let of_other = "..other";
    fs::create_dir(directory.join(of_other)).unwrap();
    fs::write(directory.join(of_other).join("a"), "2").unwrap();
    let own = current(directory).unwrap().unwrap();
    swap_data_link(directory, of_other).unwrap();
    let pruned = prune_if_current(directory, &BTreeSet::from(["a"]), &own);
    assert!(pruned.is_err());
    assert_eq!(fs::read_to_string(directory.join("a")).unwrap(), "2");
}

#[test]
fn the_name_of_a_directory_is_not_used_again_within_its_second() {
    let volume = tempdir().unwrap();
    let directory = volume.path();
    let writer = AtomicWriter { directory, group: None, now: Timestamp::UNIX_EPOCH };
    let mut names = BTreeSet::new();
    for number in 0..5 {
        write(&writer, &version(number)).unwrap();
        assert!(names.insert(fs::read_link(directory.join(DATA)).unwrap()), "{names:?}");
    }
}

const KEYS: usize = 1_000;
const VERSIONS: usize = 100;
/// Between two reads, so that the directory is not locked all the time.
const PAUSE: Duration = Duration::from_millis(10);

/// Every key has the version and its own name as text.
fn version(number: usize) -> Payload {
    let text = |key: &str| format!("{number:03} {key}");
    let key = |index: usize| format!("key-{index:04}");
    let file = |key: String| {
        let bytes = text(&key).into_bytes().into();
        (key, PayloadFile { bytes, mode: 0o644, owner: None, keep: false })
    };
    (0..KEYS).map(key).map(file).collect()
}

/// The version that a file has, which must be whole; none when it is just being removed.
fn version_of(path: &Path) -> Option<usize> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        text => text.unwrap(),
    };
    let (number, key) = text.split_once(' ').unwrap_or_else(|| panic!("{text:?}"));
    assert_eq!(Some(key), path.file_name().and_then(|name| name.to_str()));
    Some(number.parse().unwrap())
}

/// Reads all files of the directory that the link leads to now; the version of all of them, none when they were removed meanwhile.
fn read_all(directory: &Path) -> Option<usize> {
    let data = directory.join(fs::read_link(directory.join(DATA)).unwrap());
    let mut versions = BTreeSet::new();
    for index in 0..KEYS {
        versions.insert(version_of(&data.join(format!("key-{index:04}")))?);
    }
    assert_eq!(versions.len(), 1, "versions are mixed: {versions:?}");
    versions.pop_first()
}

#[expect(
    clippy::disallowed_methods,
    reason = "readers on threads of their own wait for nothing: they leave room for the writer"
)]
#[test]
fn a_reader_of_1000_keys_sees_one_version_at_a_time_while_they_change_100_times() {
    // In memory, as that of a Secret: a disk that others use would take minutes.
    let volume = tempfile::tempdir_in("/dev/shm").unwrap();
    let directory = volume.path();
    let writer = AtomicWriter { directory, group: None, now: Timestamp::UNIX_EPOCH };
    write(&writer, &version(0)).unwrap();
    let is_over = AtomicBool::new(false);
    let (whole, single) = thread::scope(|threads| {
        let whole = threads.spawn(|| {
            let mut seen = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                seen.extend(read_all(directory));
                thread::sleep(PAUSE);
            }
            seen
        });
        // By the names that containers use: each is always there, whole, and never of an older version than before.
        let single = threads.spawn(|| {
            let mut seen = vec![0];
            for index in (0..KEYS).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                seen.extend(version_of(&directory.join(format!("key-{index:04}"))));
                thread::sleep(PAUSE / 20);
            }
            seen
        });
        let written = (1..=VERSIONS).try_for_each(|number| {
            write(&writer, &version(number))?;
            let found = read_all(directory);
            (found == Some(number))
                .then_some(())
                .ok_or_else(|| io::Error::other(format!("{found:?}")))
        });
        is_over.store(true, Ordering::Relaxed);
        written.unwrap();
        (whole.join().unwrap(), single.join().unwrap())
    });
    assert!(whole.is_sorted() && single.is_sorted(), "a version came back");
    assert!(single.len() > 100, "{} reads", single.len());
    assert_eq!((read_all(directory), names_in(directory).len()), (Some(VERSIONS), KEYS + 2));
}
