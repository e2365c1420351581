//! Real files. Where a test is about hearing of changes the rescan is an hour away, so that only that can be the reason.

use std::fs;
use std::os::unix::fs::symlink;

use oarsman_crash::HungMount;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::{TempDir, tempdir};
use tokio::time::Instant;

use super::*;
use crate::report_store::tests::empty_report_store;

const HOUR: Duration = Duration::from_secs(3600);
/// A failure, not a wait: what is waited for comes in milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

fn manifest(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: a, image: b}}]}}\n"
    )
}

struct FileSourceFixture {
    directory: TempDir,
    sets: PodSets,
}

impl FileSourceFixture {
    fn at(directory: TempDir, path: &str, rescan: Duration) -> Self {
        let report_store = empty_report_store();
        let sets = pods_from_files(&directory.path().join(path), "n", rescan, &report_store);
        Self { directory, sets }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Names of the next set.
    async fn next(&mut self) -> Vec<String> {
        let set = timeout(PATIENCE, self.sets.next()).await.expect("no set came").unwrap();
        set.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    }
}

#[tokio::test]
async fn changes_in_a_directory_are_noticed() {
    let mut source = FileSourceFixture::at(tempdir().unwrap(), "", HOUR);
    assert_eq!(source.next().await, [""; 0]);
    source.write("b.yaml", manifest("b"));
    assert_eq!(source.next().await, ["b-n"]);
    source.write(
        "a.json",
        serde_json::to_vec(&serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "a", "image": "b"}]},
        }))
        .unwrap(),
    );
    assert_eq!(source.next().await, ["a-n", "b-n"]);
    source.write("b.yaml", manifest("changed"));
    assert_eq!(source.next().await, ["a-n", "changed-n"]);
    fs::rename(source.path("a.json"), source.path(".hidden")).unwrap();
    assert_eq!(source.next().await, ["changed-n"]);
    fs::remove_file(source.path("b.yaml")).unwrap();
    assert_eq!(source.next().await, [""; 0]);
}

#[tokio::test]
async fn a_single_file_comes_goes_and_comes_back() {
    let mut source = FileSourceFixture::at(tempdir().unwrap(), "web.yaml", HOUR);
    assert_eq!(source.next().await, [""; 0], "ready although nothing is there");
    source.write("other.yaml", manifest("other"));
    source.write("web.yaml", manifest("web"));
    assert_eq!(source.next().await, ["web-n"]);
    fs::remove_file(source.path("web.yaml")).unwrap();
    assert_eq!(source.next().await, [""; 0]);
    source.write("new", manifest("moved"));
    fs::rename(source.path("new"), source.path("web.yaml")).unwrap();
    assert_eq!(source.next().await, ["moved-n"]);
}

#[tokio::test]
async fn a_directory_that_is_created_or_replaced_later_is_noticed() {
    let mut source = FileSourceFixture::at(tempdir().unwrap(), "pods/", HOUR);
    assert_eq!(source.next().await, [""; 0]);
    fs::create_dir(source.path("new")).unwrap();
    source.write("new/a", manifest("a"));
    fs::rename(source.path("new"), source.path("pods")).unwrap();
    assert_eq!(source.next().await, ["a-n"]);
    fs::remove_dir_all(source.path("pods")).unwrap();
    assert_eq!(source.next().await, [""; 0]);
    fs::create_dir(source.path("new")).unwrap();
    source.write("new/b", manifest("b"));
    fs::rename(source.path("new"), source.path("pods")).unwrap();
    assert_eq!(source.next().await, ["b-n"]);
}

#[tokio::test]
async fn a_change_without_notification_is_found_by_the_rescan() {
    let elsewhere = tempdir().unwrap();
    let target = elsewhere.path().join("target");
    fs::write(&target, manifest("a")).unwrap();
    let directory = tempdir().unwrap();
    symlink(&target, directory.path().join("link")).unwrap();
    let mut source = FileSourceFixture::at(directory, "", Duration::from_millis(20));
    assert_eq!(source.next().await, ["a-n"], "links are followed");
    fs::write(&target, manifest("b")).unwrap();
    assert_eq!(source.next().await, ["b-n"]);
}

#[tokio::test]
async fn other_entries_in_the_directory_do_not_hide_or_delay_a_manifest() {
    let directory = tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("a.yaml"), manifest("a")).unwrap();
    fs::write(at(".dot.yaml"), manifest("dot")).unwrap();
    fs::write(at("binary"), [0x7f, b'E', b'L', b'F', 0, 0xff]).unwrap();
    fs::write(at("bomb"), bomb()).unwrap();
    fs::write(at("half.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {").unwrap();
    let huge = fs::File::create(at("huge")).unwrap();
    huge.set_len((10 << 20) + 1).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    fs::create_dir(at("below")).unwrap();
    fs::write(at("below/b.yaml"), manifest("b")).unwrap();
    fs::write(at("z.yaml"), manifest("z")).unwrap();
    let mut source = FileSourceFixture::at(directory, "", HOUR);
    assert_eq!(source.next().await, ["a-n", "z-n"]);
}

fn bomb() -> String {
    let message =
        |i: usize| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(","));
    "a0: &a0 lol\n".to_owned() + &(1..=9).map(message).collect::<String>()
}

#[tokio::test]
async fn a_file_that_is_written_slowly_keeps_its_pod_until_it_is_whole() {
    let mut source = FileSourceFixture::at(tempdir().unwrap(), "", HOUR);
    source.write("a", manifest("a"));
    source.write("z", manifest("z"));
    assert_eq!(source.next().await, ["a-n", "z-n"]);
    source.write("a", "");
    source.write("z", manifest("seen"));
    assert_eq!(source.next().await, ["a-n", "seen-n"], "emptied");
    source.write("a", &manifest("b")[..40]);
    source.write("z", manifest("again"));
    assert_eq!(source.next().await, ["a-n", "again-n"], "half of it");
    source.write("a", manifest("b"));
    assert_eq!(source.next().await, ["b-n", "again-n"], "whole");
}

#[tokio::test]
async fn a_manifests_uid_does_not_depend_on_slashes_at_the_end_of_the_path() {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("pods")).unwrap();
    fs::write(directory.path().join("pods/a"), manifest("a")).unwrap();
    let uid = async |path: &str| {
        let mut sets =
            pods_from_files(&directory.path().join(path), "n", HOUR, &empty_report_store());
        timeout(PATIENCE, sets.next()).await.unwrap().unwrap()[0].metadata.uid.clone()
    };
    assert_eq!(uid("pods").await, uid("pods//").await);
}

/// Row H19 of docs/security.md.
#[tokio::test]
async fn a_path_on_a_file_system_that_hangs_blocks_no_other_task() {
    let directory = tempdir().unwrap();
    let point = directory.path().join("mount");
    fs::create_dir(&point).unwrap();
    let Some(mount) = HungMount::at(&point) else { return };
    // A thread that is blocked there goes on when the mount is gone.
    let mount = mount.end_after(PATIENCE);
    let mut source = FileSourceFixture::at(directory, "mount/pods", HOUR);
    let begin = Instant::now();
    assert!(timeout(Duration::from_millis(100), source.sets.next()).await.is_err());
    assert!(begin.elapsed() < PATIENCE / 2, "the only thread was blocked");
    drop(mount);
}
