//! The ground on real directories and real cgroups, each test below names of its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use oarsman_clock::SystemClock;
use oarsman_core::resources::names::CgroupDriver;
use oarsman_core::view::{ContainerLabel, ContainerState, Exit};
use tempfile::TempDir;

use super::*;

/// A ground of one's own; what it made of cgroups goes with it.
struct Site {
    ground: Ground,
    home: TempDir,
    cgroups: String,
}

impl Site {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let cgroups = format!("/oarsman-ground-{}-{number}", std::process::id());
        let home = tempfile::tempdir().unwrap();
        let settings = Settings {
            root: home.path().join("root"),
            pod_logs: home.path().join("logs"),
            container_logs: Some(home.path().join("links")),
            cgroups: CgroupNames::new(CgroupDriver::Cgroupfs, &cgroups),
            resources: NodeResources::of_memory(1 << 30),
            providers: "/nowhere".into(),
            clock: Arc::new(SystemClock::start()),
            is_guest: true,
        };
        Self { ground: Ground::open(settings).unwrap(), home, cgroups }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let root = Path::new(&self.cgroups);
        oarsman_host::cgroups::Cgroups::discover(root).unwrap().destroy(root).unwrap();
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
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn what_is_made_for_a_pod_is_there_until_it_is_removed() {
    let site = Site::new();
    let (ground, a) = (&site.ground, pod("a"));
    for _ in 0..2 {
        ground.prepare(&a, &Payloads::new()).await.unwrap();
    }
    for directory in ["root/pods/a", "root/pods/a/volumes", "root/pods/a/plugins"] {
        assert_eq!(mode(&site.at(directory)), 0o750, "{directory}");
    }
    assert_eq!(mode(&site.at("logs/default_web_a")), 0o755);
    assert!(ground.has_cgroup(&uid("a")).await.unwrap());
    let held = Holding { cgroup: true, own: true };
    assert_eq!(ground.pods().await.unwrap(), BTreeMap::from([(uid("a"), held)]));
    ground.release_volumes(&uid("a")).await.unwrap();
    ground.release_cgroup(&uid("a")).await.unwrap();
    assert!(!ground.has_cgroup(&uid("a")).await.unwrap());
    let left = oarsman_host::cgroups::hierarchies(&oarsman_host::mounts::current().unwrap());
    let left = left.iter().map(|hierarchy| hierarchy.directory(Path::new(&site.cgroups)));
    assert_eq!(left.filter(|directory| directory.exists()).count(), 0, "a guest leaves no group");
    ground.prepare(&a, &Payloads::new()).await.unwrap();
    assert!(ground.has_cgroup(&uid("a")).await.unwrap(), "and makes them anew");
    ground.release_cgroup(&uid("a")).await.unwrap();
    assert!(site.at("root/pods/a").is_dir(), "the directory stays until the pod is removed");
    for _ in 0..2 {
        ground.remove(&uid("a")).await.unwrap();
    }
    assert_eq!(ground.pods().await.unwrap(), BTreeMap::new());
    assert!(!site.at("root/pods/a").exists() && !site.at("logs/default_web_a").exists());
}

#[tokio::test]
async fn a_uid_that_leads_elsewhere_is_refused() {
    let site = Site::new();
    for bad in ["..", "../../etc", "a/b", ""] {
        let refused = site.ground.prepare(&pod(bad), &Payloads::new()).await.unwrap_err();
        assert!(refused.to_string().contains("metadata.uid"), "{bad:?}: {refused}");
        assert!(site.ground.remove(&uid(bad)).await.is_err(), "{bad:?}");
    }
    assert!(site.at("root/pods").is_dir());
}

#[tokio::test]
async fn a_container_is_furnished_with_a_file_for_its_words_and_the_hosts_file() {
    let site = Site::new();
    let (ground, a) = (&site.ground, pod("a"));
    ground.prepare(&a, &Payloads::new()).await.unwrap();
    let first = ground.furnish(&a, "main", 0, Some("one\n")).await.unwrap();
    assert_eq!(mode(&first.message_file), 0o666);
    assert!(site.at("logs/default_web_a/main").is_dir());
    let hosts = first.hosts.unwrap();
    assert_eq!((mode(&hosts), fs::read_to_string(&hosts).unwrap()), (0o644, "one\n".to_owned()));
    let inode = fs::metadata(&hosts).unwrap().ino();
    ground.furnish(&a, "main", 1, Some("two\n")).await.unwrap();
    assert_eq!(fs::read_to_string(&hosts).unwrap(), "two\n");
    assert_eq!(fs::metadata(&hosts).unwrap().ino(), inode, "containers have this file mounted");
    assert!(first.message_file.exists(), "the container before may still be asked");
    let third = ground.furnish(&a, "main", 2, None).await.unwrap();
    assert!(!first.message_file.exists() && third.message_file.exists());
    assert_eq!(third.hosts, None);
}

#[tokio::test]
async fn last_words_are_the_containers_own_or_the_end_of_its_log() {
    let site = Site::new();
    let (ground, a) = (&site.ground, pod("a"));
    ground.prepare(&a, &Payloads::new()).await.unwrap();
    let file = ground.furnish(&a, "main", 3, None).await.unwrap().message_file;
    let log = site.at("logs/default_web_a/main/3.log");
    fs::write(&log, "2026-01-01T00:00:00Z stderr F from the log\n").unwrap();
    let words = async |file: Option<PathBuf>| {
        ground.last_words(&uid("a"), &ended("main", 3, file)).await.unwrap()
    };
    assert_eq!(words(Some(file.clone())).await, "from the log\n");
    fs::write(&file, "own words").unwrap();
    assert_eq!(words(Some(file.clone())).await, "own words");
    let secret = site.at("secret");
    fs::write(&secret, "not for a status").unwrap();
    assert_eq!(words(Some(secret.clone())).await, "from the log\n", "a file that is not ours");
    fs::remove_file(&file).unwrap();
    symlink(&secret, &file).unwrap();
    let refused = ground.last_words(&uid("a"), &ended("main", 3, Some(file))).await;
    assert!(refused.is_err(), "a symlink is not followed: {refused:?}");
}

#[tokio::test]
async fn a_record_outlives_the_agent_and_a_broken_one_is_set_aside() {
    let site = Site::new();
    let ground = &site.ground;
    assert_eq!(ground.recall(&uid("a")).await.unwrap(), None);
    for (phase, lasting) in [("Running", false), ("Succeeded", true)] {
        let status = PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() };
        ground.remember(&uid("a"), &status, lasting).await.unwrap();
        assert_eq!(ground.recall(&uid("a")).await.unwrap(), Some(status));
    }
    assert_eq!(
        ground.pods().await.unwrap(),
        BTreeMap::from([(uid("a"), Holding { own: true, cgroup: false })])
    );
    let record = site.at("root/oarsman-statuses/a.json");
    assert_eq!(mode(&record), 0o600);
    fs::write(&record, "{\"phase\":").unwrap();
    assert_eq!(ground.recall(&uid("a")).await.unwrap(), None);
    assert!(record.with_extension("broken").exists() && !record.exists());
    ground.remove(&uid("a")).await.unwrap();
    assert_eq!(fs::read_dir(site.at("root/oarsman-statuses")).unwrap().count(), 0);
}

#[tokio::test]
async fn the_log_of_a_removed_container_goes_with_what_was_rotated_and_its_link() {
    let site = Site::new();
    let (ground, a) = (&site.ground, pod("a"));
    ground.furnish(&a, "main", 1, None).await.unwrap();
    for name in ["1.log", "1.log.20260101-000000", "1.log.20260101-000001.gz", "10.log", "2.log"] {
        fs::write(site.at("logs/default_web_a/main").join(name), "").unwrap();
    }
    let view = ended("main", 1, None);
    ground.link_log(&a, "main", 1, &view.id).await.unwrap();
    let link = site.at("links/web_default_main-id-main-1.log");
    assert_eq!(fs::read_link(&link).unwrap(), site.at("logs/default_web_a/main/1.log"));
    ground.discard_log(&uid("a"), &a.full_name(), &view).await.unwrap();
    assert!(!link.is_symlink());
    assert_eq!(ground.log_names(&a, "main").await.unwrap(), ["10.log", "2.log"]);
}

#[tokio::test]
async fn logs_go_with_their_pod_and_links_that_were_left_are_swept() {
    let site = Site::new();
    let ground = &site.ground;
    for name in ["a", "b"] {
        let pod = pod(name);
        ground.furnish(&pod, "main", 0, None).await.unwrap();
        ground.link_log(&pod, "main", 0, &name.into()).await.unwrap();
    }
    let elsewhere = site.at("links/elsewhere.log");
    symlink("/nonexistent/0.log", &elsewhere).unwrap();
    fs::create_dir(site.at("logs/somebody-elses")).unwrap();
    fs::remove_dir_all(site.at("root/pods/a")).unwrap();
    let pods = ground.pods().await.unwrap();
    let own = Holding { own: true, cgroup: false };
    assert_eq!(pods, BTreeMap::from([(uid("a"), Holding::default()), (uid("b"), own)]));
    let link = |name: &str| site.at(&format!("links/web_default_main-{name}.log"));
    assert!(link("a").is_symlink(), "its log may only be in the course of being rotated");
    ground.remove(&uid("a")).await.unwrap();
    assert!(!site.at("logs/default_web_a").exists() && site.at("logs/somebody-elses").exists());
    assert!(!link("a").is_symlink() && link("b").is_symlink() && elsewhere.is_symlink());
}
