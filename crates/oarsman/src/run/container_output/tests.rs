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
    assert!(output.read(&node).unwrap().is_empty(), "nothing was printed yet");
    write(&directory, 0, "2026-01-01T00:00:01Z stdout F one\n2026-01-01T00:00:02Z stdout P tw");
    assert_eq!(output.read(&node).unwrap(), ["web | one"]);
    write(&directory, 0, "o\n2026-01-01T00:00:03Z stdout F !\n");
    write(&directory, 1, "2026-01-01T00:00:04Z stderr P after a ");
    assert_eq!(output.read(&node).unwrap(), ["web | two!"]);
    write(&directory, 1, "\n2026-01-01T00:00:05Z stderr F restart\n");
    assert_eq!(output.read(&node).unwrap(), ["web | after a restart"]);
    assert!(output.read(&node).unwrap().is_empty());
}

#[test]
fn several_containers_are_named_and_the_last_lines_of_a_removed_pod_printed() {
    let logs = tempfile::tempdir().unwrap();
    let node = node(logs.path(), &["a", "b"]);
    let directory = logs.path().join("default_web_u");
    let mut output = ContainerOutput::default();
    write(&directory.join("a"), 0, "2026-01-01T00:00:01Z stdout F one\n");
    write(&directory.join("b"), 0, "2026-01-01T00:00:01Z stdout F two\n");
    assert_eq!(output.read(&node).unwrap(), ["web/a | one", "web/b | two"]);
    write(&directory.join("a"), 0, "2026-01-01T00:00:02Z stdout F bye\n");
    fs::remove_dir_all(logs.path().join("default_web_u")).unwrap();
    assert_eq!(output.read(&NodeReport::default()).unwrap(), ["web/a | bye"]);
    assert!(output.logs.is_empty(), "and is forgotten");
}

#[test]
fn control_sequences_other_than_colours_are_removed() {
    let rows = [
        ("plain\ttext", "plain\ttext"),
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
        ("\x1b[2J\x1b[Hgone", "[2J[Hgone"),
        ("\x1b]0;title\x07", "]0;title"),
        ("over\rwritten", "overwritten"),
        ("end\x1b", "end"),
        ("\x1b[31", "[31"),
    ];
    for (line, want) in rows {
        assert_eq!(strip_control_sequences(line), want, "{line:?}");
    }
}
