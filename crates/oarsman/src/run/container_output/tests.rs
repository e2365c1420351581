//! Reads real log files.

use std::fs::{self, File};
use std::io::Write;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::report::StageReport;
use serde_json::json;

use super::*;

fn node(logs: &Path, containers: &[&str]) -> NodeReport {
    let containers: Vec<_> = containers.iter().map(|name| json!({ "name": name })).collect();
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "default", "uid": "u" },
        "spec": { "containers": containers },
    }))
    .unwrap();
    let stage = StageReport::Syncing;
    let pod = PodReport {
        pod,
        place: None,
        stage,
        leaving: false,
        doing: None,
        next_try: None,
        waits_for: None,
        last_error: None,
        probes: Vec::new(),
    };
    let pod_logs = logs.display().to_string();
    NodeReport { pod_logs, pods: vec![pod], ..NodeReport::default() }
}

fn write(directory: &Path, attempt: u32, text: &str) {
    fs::create_dir_all(directory).unwrap();
    let path = directory.join(format!("{attempt}.log"));
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn every_whole_line_is_printed_once_with_its_pod() {
    let logs = tempfile::tempdir().unwrap();
    let node = node(logs.path(), &["main"]);
    let directory = logs.path().join("default_web_u/main");
    let mut output = ContainerOutput::default();
    assert!(output.read(&node).is_empty(), "nothing was printed yet");
    write(&directory, 0, "2026-01-01T00:00:01Z stdout F one\n2026-01-01T00:00:02Z stdout P tw");
    assert_eq!(output.read(&node), ["web | one"]);
    write(&directory, 0, "o\n2026-01-01T00:00:03Z stdout F !\n");
    write(&directory, 1, "2026-01-01T00:00:04Z stderr P after a ");
    assert_eq!(output.read(&node), ["web | two!"]);
    write(&directory, 1, "\n2026-01-01T00:00:05Z stderr F restart\n");
    assert_eq!(output.read(&node), ["web | after a restart"]);
    assert!(output.read(&node).is_empty());
}

#[test]
fn several_containers_are_named_and_the_last_lines_of_a_removed_pod_printed() {
    let logs = tempfile::tempdir().unwrap();
    let node = node(logs.path(), &["a", "b"]);
    let directory = logs.path().join("default_web_u");
    let mut output = ContainerOutput::default();
    write(&directory.join("a"), 0, "2026-01-01T00:00:01Z stdout F one\n");
    write(&directory.join("b"), 0, "2026-01-01T00:00:01Z stdout F two\n");
    assert_eq!(output.read(&node), ["web/a | one", "web/b | two"]);
    write(&directory.join("a"), 0, "2026-01-01T00:00:02Z stdout F bye\n");
    fs::remove_dir_all(logs.path().join("default_web_u")).unwrap();
    assert_eq!(output.read(&NodeReport::default()), ["web/a | bye"]);
    assert!(output.logs.is_empty(), "and is forgotten");
}

#[test]
fn a_line_without_end_is_printed_in_parts_each_with_its_pod() {
    let logs = tempfile::tempdir().unwrap();
    let node = node(logs.path(), &["main"]);
    let part = format!("2026-01-01T00:00:01Z stdout P {}\n", "x".repeat(16 * 1024));
    write(&logs.path().join("default_web_u/main"), 0, &part.repeat(1024));
    let (mut output, mut printed, mut rounds) = (ContainerOutput::default(), 0, 0);
    loop {
        let lines = output.read(&node);
        let bytes: usize = lines.iter().map(String::len).sum();
        assert!(bytes <= 768 * 1024, "{bytes} bytes at once");
        assert!(lines.iter().all(|line| line.starts_with("web | x")));
        printed += lines.iter().map(|line| line.len() - "web | ".len()).sum::<usize>();
        let held: usize = output.logs.values().flat_map(|log| &log.rest).map(Vec::capacity).sum();
        assert!(held <= 1024 * 1024, "{held} bytes are held for one line");
        rounds += 1;
        if !output.is_behind() {
            break;
        }
    }
    assert!(rounds > 16 && printed > 15 * 1024 * 1024, "{rounds} {printed}");
}

#[test]
fn a_log_that_cannot_be_read_is_said_once_and_others_are_read() {
    let logs = tempfile::tempdir().unwrap();
    let node = node(logs.path(), &["a", "b"]);
    let directory = logs.path().join("default_web_u");
    fs::create_dir_all(directory.join("a")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", directory.join("a/0.log")).unwrap();
    write(&directory.join("b"), 0, "2026-01-01T00:00:01Z stdout F one\n");
    let mut output = ContainerOutput::default();
    let lines = output.read(&node);
    assert!(lines[0].starts_with("web/a | the log cannot be read"), "{lines:?}");
    assert_eq!(lines[1..], ["web/b | one"]);
    write(&directory.join("b"), 0, "2026-01-01T00:00:02Z stdout F two\n");
    assert_eq!(output.read(&node), ["web/b | two"]);
}
