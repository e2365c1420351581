//! Files of pods on real directories, each test below one of its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use jiff::Timestamp;
use oarsman_core::view::{ContainerLabel, ContainerState, Exit};
use tempfile::TempDir;

use super::*;

const UUID: &str = "0b1ab2c8-7a8f-4b0c-9d6e-1f2a3b4c5d6e";

struct PodFilesFixture {
    files: HostPodFiles,
    home: TempDir,
}

impl PodFilesFixture {
    fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap())
    }

    fn open(home: TempDir) -> Self {
        let settings = PodFileSettings {
            root: home.path().join("root"),
            pod_logs: home.path().join("logs"),
            container_logs: Some(home.path().join("links")),
        };
        Self { files: HostPodFiles::open(settings).unwrap(), home }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }
}

fn pod(uid: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some("web".to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.metadata.uid = Some(uid.to_owned());
    pod.spec = Some(Default::default());
    pod
}

fn uid(text: &str) -> PodUid {
    PodUid::from(text)
}

fn ended(name: &str, restart_count: u32, message_file: Option<PathBuf>) -> ContainerView {
    ContainerView {
        id: format!("id-{name}-{restart_count}").into(),
        sandbox: "s".into(),
        name: name.to_owned(),
        image: String::new(),
        image_ref: String::new(),
        created_at: Timestamp::UNIX_EPOCH,
        state: ContainerState::Exited(Exit {
            started_at: None,
            finished_at: Timestamp::UNIX_EPOCH,
            code: 1,
            reason: "Error".to_owned(),
            message: String::new(),
        }),
        label: ContainerLabel {
            restart_count,
            termination_message_policy: "FallbackToLogsOnError".to_owned(),
            ..ContainerLabel::default()
        },
        message_file,
        user: None,
        stop_signal: None,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn pod_directories_exist_until_they_are_removed() {
    let site = PodFilesFixture::new();
    let (files, a) = (&site.files, pod("a"));
    for _ in 0..2 {
        files.make_directories(&a).await.unwrap();
    }
    for directory in ["root/pods/a", "root/pods/a/volumes", "root/pods/a/plugins"] {
        assert_eq!(mode(&site.at(directory)), 0o750, "{directory}");
    }
    assert_eq!(mode(&site.at("logs/default_web_a")), 0o755);
    let held = FoundFiles { directory: true };
    assert_eq!(files.pods().await.unwrap(), BTreeMap::from([(uid("a"), held)]));
    for _ in 0..2 {
        files.remove(&uid("a")).await.unwrap();
    }
    assert_eq!(files.pods().await.unwrap(), BTreeMap::new());
    assert!(!site.at("root/pods/a").exists() && !site.at("logs/default_web_a").exists());
}

#[tokio::test]
async fn a_uid_that_leads_elsewhere_is_refused() {
    let site = PodFilesFixture::new();
    for bad in ["..", "../../etc", "a/b", ""] {
        let refused = site.files.make_directories(&pod(bad)).await.unwrap_err();
        assert!(refused.to_string().contains("metadata.uid"), "{bad:?}: {refused}");
        assert!(site.files.remove(&uid(bad)).await.is_err(), "{bad:?}");
        let made = site.files.make_container_files(&pod("a"), bad, 0, None).await;
        assert!(made.is_err(), "a container {bad:?}");
    }
    assert!(site.at("root/pods").is_dir());
}

#[tokio::test]
async fn a_container_gets_a_file_for_its_termination_message_and_the_hosts_file() {
    let site = PodFilesFixture::new();
    let (files, a) = (&site.files, pod("a"));
    files.make_directories(&a).await.unwrap();
    let first = files.make_container_files(&a, "main", 0, Some("one\n".to_owned())).await.unwrap();
    assert_eq!(mode(&first.termination_message), 0o666);
    assert!(site.at("logs/default_web_a/main").is_dir());
    let hosts = first.hosts.unwrap();
    assert_eq!((mode(&hosts), fs::read_to_string(&hosts).unwrap()), (0o644, "one\n".to_owned()));
    let inode = fs::metadata(&hosts).unwrap().ino();
    files.make_container_files(&a, "main", 1, Some("two\n".to_owned())).await.unwrap();
    assert_eq!(fs::read_to_string(&hosts).unwrap(), "two\n");
    assert_eq!(fs::metadata(&hosts).unwrap().ino(), inode, "containers have this file mounted");
    assert!(first.termination_message.exists(), "the container before may still be asked");
    let third = files.make_container_files(&a, "main", 2, None).await.unwrap();
    assert!(!first.termination_message.exists() && third.termination_message.exists());
    assert_eq!(third.hosts, None);
}

#[tokio::test]
async fn a_termination_message_is_the_containers_own_or_the_end_of_its_log() {
    let site = PodFilesFixture::new();
    let (files, a) = (&site.files, pod("a"));
    files.make_directories(&a).await.unwrap();
    let file = files.make_container_files(&a, "main", 3, None).await.unwrap().termination_message;
    let log = site.at("logs/default_web_a/main/3.log");
    fs::write(&log, "2026-01-01T00:00:00Z stderr F from the log\n").unwrap();
    let words = async |file: Option<PathBuf>| {
        files.termination_message(&uid("a"), &ended("main", 3, file)).await.unwrap()
    };
    assert_eq!(words(Some(file.clone())).await, "from the log\n");
    fs::write(&file, "own words").unwrap();
    assert_eq!(words(Some(file.clone())).await, "own words");
    let secret = site.at("secret");
    fs::write(&secret, "not for a status").unwrap();
    assert_eq!(words(Some(secret.clone())).await, "from the log\n", "a file that is not ours");
    fs::remove_file(&file).unwrap();
    symlink(&secret, &file).unwrap();
    let refused = files.termination_message(&uid("a"), &ended("main", 3, Some(file))).await;
    assert!(refused.is_err(), "a symlink is not followed: {refused:?}");
}

#[tokio::test]
async fn the_log_of_a_removed_container_is_removed_with_rotated_files_and_link() {
    let site = PodFilesFixture::new();
    let (files, a) = (&site.files, pod("a"));
    files.make_container_files(&a, "main", 1, None).await.unwrap();
    for name in ["1.log", "1.log.20260101-000000", "1.log.20260101-000001.gz", "10.log", "2.log"] {
        fs::write(site.at("logs/default_web_a/main").join(name), "").unwrap();
    }
    let view = ended("main", 1, None);
    files.link_log(&a, "main", 1, &view.id).await.unwrap();
    let link = site.at("links/web_default_main-id-main-1.log");
    assert_eq!(fs::read_link(&link).unwrap(), site.at("logs/default_web_a/main/1.log"));
    files.remove_log(&uid("a"), &a.full_name(), &view).await.unwrap();
    assert!(!link.is_symlink());
    assert_eq!(files.log_names(&a, "main").await.unwrap(), ["10.log", "2.log"]);
}

#[tokio::test]
async fn a_log_directory_that_became_a_link_leads_nowhere() {
    let site = PodFilesFixture::new();
    let (files, a) = (&site.files, pod("a"));
    let file = files.make_container_files(&a, "main", 3, None).await.unwrap().termination_message;
    let logs = site.at("logs/default_web_a/main");
    fs::remove_dir(&logs).unwrap();
    let elsewhere = site.at("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let secret = elsewhere.join("3.log");
    fs::write(&secret, "2026-01-01T00:00:00Z stderr F secret\n").unwrap();
    symlink(&elsewhere, &logs).unwrap();
    let view = ended("main", 3, Some(file));
    let read = files.termination_message(&uid("a"), &view).await;
    assert!(!read.as_ref().is_ok_and(|text| text.contains("secret")), "{read:?}");
    let removed = files.remove_log(&uid("a"), &a.full_name(), &view).await;
    assert!(removed.is_err() && secret.exists(), "{removed:?}");
    let listed = files.log_names(&a, "main").await;
    assert!(listed.is_err(), "{listed:?}");
}

#[tokio::test]
async fn no_directory_is_made_where_a_link_in_the_logs_leads() {
    let site = PodFilesFixture::new();
    let (files, a) = (&site.files, pod("a"));
    let elsewhere = site.at("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, site.at("logs/default_web_a")).unwrap();
    let made = [
        files.make_directories(&a).await,
        files.make_container_files(&a, "main", 0, None).await.map(drop),
    ];
    assert!(made.iter().all(Result::is_err), "{made:?}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[tokio::test]
async fn a_directory_of_logs_that_became_a_link_leads_nowhere() {
    let site = PodFilesFixture::new();
    let (files, a) = (&site.files, pod(UUID));
    let volume = format!("elsewhere/shop_db_{UUID}");
    for kept in ["elsewhere/shop_db_data", &volume] {
        fs::create_dir_all(site.at(kept)).unwrap();
        fs::write(site.at(kept).join("file"), "").unwrap();
    }
    fs::rename(site.at("logs"), site.at("moved")).unwrap();
    symlink(site.at("elsewhere"), site.at("logs")).unwrap();
    assert_eq!(files.pods().await.unwrap(), BTreeMap::new());
    for bad in ["data", UUID] {
        files.remove(&uid(bad)).await.unwrap();
    }
    assert!(files.make_directories(&a).await.is_err());
    for kept in ["elsewhere/shop_db_data/file", &format!("{volume}/file")] {
        assert!(site.at(kept).exists(), "{kept}");
    }
    assert_eq!(fs::read_dir(site.at("elsewhere")).unwrap().count(), 2);
}

#[tokio::test]
async fn directories_named_like_logs_are_no_pods() {
    let site = PodFilesFixture::new();
    fs::create_dir(site.at("logs/shop_db_data")).unwrap();
    assert_eq!(site.files.pods().await.unwrap(), BTreeMap::new());
}

#[tokio::test]
async fn files_in_place_of_the_log_directories_are_a_matter_of_pods_that_need_them() {
    for broken in ["logs", "links"] {
        let site = PodFilesFixture::new();
        let a = pod("a");
        site.files.make_directories(&a).await.unwrap();
        fs::remove_dir_all(site.at(broken)).unwrap();
        fs::write(site.at(broken), "").unwrap();
        let again = PodFilesFixture::open(site.home);
        for files in [&site.files, &again.files] {
            let held = FoundFiles { directory: true };
            assert_eq!(files.pods().await.unwrap(), BTreeMap::from([(uid("a"), held)]), "{broken}");
            let made = files.make_directories(&a).await;
            assert_eq!(made.is_err(), broken == "logs", "{made:?}");
            files.remove(&uid("a")).await.unwrap();
            fs::create_dir(again.at("root/pods/a")).unwrap();
        }
    }
}

#[tokio::test]
async fn logs_are_removed_with_their_pod_and_dangling_links_too() {
    let site = PodFilesFixture::new();
    let files = &site.files;
    for name in [UUID, "b"] {
        let pod = pod(name);
        files.make_container_files(&pod, "main", 0, None).await.unwrap();
        files.link_log(&pod, "main", 0, &name.into()).await.unwrap();
    }
    let elsewhere = site.at("links/elsewhere.log");
    symlink("/nonexistent/0.log", &elsewhere).unwrap();
    fs::create_dir(site.at("logs/somebody-elses")).unwrap();
    fs::remove_dir_all(site.at("root/pods").join(UUID)).unwrap();
    let pods = files.pods().await.unwrap();
    let own = FoundFiles { directory: true };
    assert_eq!(pods, BTreeMap::from([(uid(UUID), FoundFiles::default()), (uid("b"), own)]));
    let link = |name: &str| site.at(&format!("links/web_default_main-{name}.log"));
    assert!(link(UUID).is_symlink(), "its log may only be in the course of being rotated");
    files.remove(&uid(UUID)).await.unwrap();
    assert!(
        !site.at(&format!("logs/default_web_{UUID}")).exists()
            && site.at("logs/somebody-elses").exists()
    );
    assert!(!link(UUID).is_symlink() && link("b").is_symlink() && elsewhere.is_symlink());
}

#[test]
fn on_a_full_disk_the_hosts_file_of_running_containers_stays_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("tmpfs", root.path(), "tmpfs", flags, c"size=8k").unwrap();
    let paths = PodPaths::new(root.path(), &PodUid::from("u"));
    fs::create_dir_all(paths.directory()).unwrap();
    let first = directories::write_hosts(&paths, "first\n").unwrap();
    fs::write(root.path().join("filler"), [1; 4096]).unwrap();
    let longer = "second\n".repeat(4096);
    let refused = directories::write_hosts(&paths, &longer).unwrap_err().to_string();
    let kept = fs::read_to_string(&first);
    let shorter =
        directories::write_hosts(&paths, "2\n").map(|path| fs::read_to_string(path).unwrap());
    rustix::mount::unmount(root.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    assert!(refused.contains("No space left"), "{refused}");
    assert_eq!(kept.unwrap(), "first\n");
    assert_eq!(shorter.unwrap(), "2\n");
}

#[tokio::test]
async fn the_ids_of_a_user_namespace_lie_where_a_go_kubelet_looks_for_them_and_go_with_the_pod() {
    let fixture = PodFilesFixture::new();
    let files = &fixture.files;
    for name in ["a", "b", "c"] {
        files.make_directories(&pod(name)).await.unwrap();
    }
    files.write_user_namespace(&uid("a"), "old").await.unwrap();
    files.write_user_namespace(&uid("a"), "new").await.unwrap();
    files.write_user_namespace(&uid("b"), "other").await.unwrap();
    let file = fixture.at("root/pods/a/userns");
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::create_dir(fixture.at("root/pods/c/userns")).unwrap();
    fs::write(fixture.at("root/pods/stray"), "").unwrap();
    let read = async || files.user_namespaces().await.unwrap();
    let content = |name: &str, content: &str| (uid(name), content.to_owned());
    let expected = [content("a", "new"), content("b", "other"), content("c", "")];
    assert_eq!(read().await, BTreeMap::from(expected));
    files.remove_user_namespace(&uid("b")).await.unwrap();
    files.remove_user_namespace(&uid("b")).await.unwrap();
    files.remove(&uid("a")).await.unwrap();
    assert_eq!(read().await.into_keys().collect::<Vec<_>>(), [uid("c")]);
    assert!(files.write_user_namespace(&uid("../a"), "").await.is_err());
}

#[tokio::test]
async fn the_files_of_a_pod_are_counted_by_what_they_are_for() {
    let fixture = PodFilesFixture::new();
    let pod = pod(UUID);
    assert_eq!(fixture.files.usage(&uid(UUID)).await.unwrap(), PodFileUsage::default());
    fixture.files.make_directories(&pod).await.unwrap();
    for container in ["a", "b"] {
        let hosts = Some("127.0.0.1 localhost\n".to_owned());
        let made = fixture.files.make_container_files(&pod, container, 0, hosts).await.unwrap();
        fs::write(&made.termination_message, "ended").unwrap();
    }
    let logs = format!("logs/default_web_{UUID}");
    for name in ["0.log", "0.log.20260101-000000", "1.log"] {
        fs::write(fixture.at(&logs).join("a").join(name), vec![b'x'; 100_000]).unwrap();
    }
    let usage = fixture.files.usage(&uid(UUID)).await.unwrap();
    assert_eq!(usage.hosts.inodes, 1);
    // Two messages, their directories, and the one above.
    assert_eq!(usage.termination_messages.inodes, 5);
    assert!(usage.termination_messages.bytes > 0 && usage.hosts.bytes > 0, "{usage:?}");
    let inodes: Vec<_> =
        usage.logs.iter().map(|(name, usage)| (name.as_str(), usage.inodes)).collect();
    assert_eq!(inodes, [("a", 4), ("b", 1)]);
    assert!(usage.logs["a"].bytes >= 300_000, "{usage:?}");
    assert_eq!(usage.total().inodes, 11);
}
