//! Rotations of real files.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use flate2::read::GzDecoder;
use oarsman_core::ids::FullName;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::super::{HostPodFiles, PodFileSettings, PodFiles};
use super::*;

/// The log of the first start of a container.
pub(crate) fn numbered_log() -> ContainerLogFile {
    ContainerLogFile {
        pod: "a".into(),
        pod_name: FullName { name: "web".to_owned(), namespace: "default".to_owned() },
        container: "main".to_owned(),
        restart_count: 0,
    }
}

/// All lines of a log and of what was rotated away from it, oldest first.
pub(crate) fn kept_lines(directory: &Path, log: &str) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    let all = names.clone();
    let is_copied = |name: &String| all.contains(&format!("{name}{COMPRESSED_SUFFIX}"));
    let counts = |name: &String| name.starts_with(&format!("{log}.")) && !is_copied(name);
    names.retain(|name| counts(name) && !name.ends_with(UNFINISHED_SUFFIX));
    names.push(log.to_owned());
    names.iter().flat_map(|name| lines(&directory.join(name))).collect()
}

fn lines(path: &Path) -> Vec<String> {
    let Ok(bytes) = fs::read(path) else { return Vec::new() };
    let mut text = String::new();
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    } else {
        bytes.as_slice().read_to_string(&mut text).unwrap();
    }
    text.lines().map(str::to_owned).collect()
}

struct LogRotationFixture {
    files: HostPodFiles,
    home: TempDir,
}

impl LogRotationFixture {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let settings = PodFileSettings {
            root: home.path().join("root"),
            pod_logs: home.path().join("logs"),
            container_logs: None,
        };
        let site = Self { files: HostPodFiles::open(settings).unwrap(), home };
        fs::create_dir_all(site.at("")).unwrap();
        site
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("logs").join(numbered_log().directory()).join(name)
    }

    fn write(&self, text: &str) {
        let mut log = File::options().append(true).create(true).open(self.at("0.log")).unwrap();
        log.write_all(text.as_bytes()).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.at("")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    async fn rotate(&self, second: i64) -> String {
        let now = Timestamp::from_second(second).unwrap();
        self.files.rotate_log(&numbered_log(), 3, now).await.unwrap()
    }
}

#[tokio::test]
async fn a_log_is_renamed_the_one_before_is_compressed_and_the_oldest_is_removed() {
    let site = LogRotationFixture::new();
    for number in 1..=4 {
        site.write(&format!("{number}\n"));
        fs::set_permissions(site.at("0.log"), fs::Permissions::from_mode(0o640)).unwrap();
        let rotated = site.rotate(number).await;
        assert_eq!(rotated, format!("0.log.19700101-00000{number}"));
        assert!(!site.at("0.log").exists(), "the runtime opens a new one");
        site.files.compress_logs(&numbered_log()).await.unwrap();
    }
    site.write("5\n");
    let want = ["0.log", "0.log.19700101-000003.gz", "0.log.19700101-000004"];
    assert_eq!(site.names(), want);
    assert_eq!(kept_lines(&site.at(""), "0.log"), ["3", "4", "5"]);
    let mode = fs::metadata(site.at(want[1])).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640, "as the runtime made the log");
}

#[tokio::test]
async fn a_log_gets_its_name_back_unless_the_runtime_has_opened_a_new_one() {
    let (site, log) = (LogRotationFixture::new(), numbered_log());
    site.write("1\n");
    let rotated = site.rotate(1).await;
    site.files.restore_log(&log, &rotated).await.unwrap();
    assert_eq!(site.names(), ["0.log"]);
    let rotated = site.rotate(2).await;
    site.write("2\n");
    site.files.restore_log(&log, &rotated).await.unwrap();
    assert_eq!(site.names(), ["0.log", rotated.as_str()]);
    assert_eq!(kept_lines(&site.at(""), "0.log"), ["1", "2"]);
    fs::remove_file(site.at("0.log")).unwrap();
    assert!(site.files.restore_log(&log, "0.log.gone").await.is_err());
}

#[tokio::test]
async fn sizes_are_those_of_regular_files_and_no_link_is_followed() {
    let site = LogRotationFixture::new();
    site.write("12345678\n");
    fs::write(site.home.path().join("other"), "outside").unwrap();
    let other = |restart_count| ContainerLogFile { restart_count, ..numbered_log() };
    symlink(site.home.path().join("other"), site.at("1.log")).unwrap();
    mknodat(CWD, site.at("2.log"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let behind_link = ContainerLogFile { container: "linked".to_owned(), ..numbered_log() };
    symlink(site.at(""), site.at("").parent().unwrap().join("linked")).unwrap();
    let logs = vec![numbered_log(), other(1), other(2), other(3), behind_link.clone()];
    let want = [
        LogFileState::Size(9),
        LogFileState::NotRegular,
        LogFileState::NotRegular,
        LogFileState::Missing,
        LogFileState::NotRegular,
    ];
    assert_eq!(site.files.log_states(logs.clone()).await.unwrap(), want);
    let rotated = site.files.rotate_log(&behind_link, 3, Timestamp::UNIX_EPOCH).await;
    assert!(rotated.unwrap_err().to_string().contains("link"));
    fs::remove_dir_all(site.home.path().join("logs")).unwrap();
    assert_eq!(site.files.log_states(logs).await.unwrap(), [LogFileState::Missing; 5]);
}

#[tokio::test]
async fn what_a_container_has_put_in_the_place_of_a_rotated_log_stops_no_rotation() {
    let site = LogRotationFixture::new();
    fs::write(site.home.path().join("other"), "outside").unwrap();
    symlink(site.home.path().join("other"), site.at("0.log.20200101-000000")).unwrap();
    fs::create_dir(site.at("0.log.20200102-000000")).unwrap();
    fs::write(site.at("0.log.20200103-000000"), "1\n").unwrap();
    fs::create_dir(site.at("0.log.20200103-000000.tmp")).unwrap();
    site.write("2\n");
    let (log, now) = (numbered_log(), "2026-01-01T00:00:00Z".parse().unwrap());
    let rotated = site.files.rotate_log(&log, 9, now).await.unwrap();
    assert_eq!(rotated, "0.log.20260101-000000");
    let failed = site.files.compress_logs(&log).await.unwrap_err();
    assert!(failed.to_string().contains("0.log.20200103-000000"), "{failed}");
    assert_eq!(fs::read(site.home.path().join("other")).unwrap(), b"outside");
    assert!(fs::symlink_metadata(site.at("0.log.20200101-000000")).unwrap().is_symlink());
}

#[tokio::test]
async fn a_container_name_that_leads_elsewhere_is_refused() {
    let site = LogRotationFixture::new();
    for container in ["..", "a/b", ""] {
        let log = ContainerLogFile { container: container.to_owned(), ..numbered_log() };
        assert!(site.files.compress_logs(&log).await.is_err(), "{container:?}");
    }
}
