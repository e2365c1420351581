//! The kubelet's own log: JSON lines, errors at start, and the rotated log file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Each unknown field of the configuration gives one warning.
const UNKNOWN: usize = 12;

/// A kubelet whose runtime does not exist.
fn kubelet(directory: &Path, flags: &[&str]) -> Child {
    let config = directory.join("config.yaml");
    let unknown: String = (0..UNKNOWN).map(|number| format!("noSuchField{number}: 1\n")).collect();
    let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailCgroupV1: false\n";
    let endpoint = format!("containerRuntimeEndpoint: unix://{}/none.sock\n", directory.display());
    fs::write(&config, format!("{head}{endpoint}{unknown}")).unwrap();
    Command::new(env!("CARGO_BIN_EXE_oarsman"))
        .arg("kubelet")
        .arg(format!("--config={}", config.display()))
        .arg(format!("--root-dir={}", directory.join("root").display()))
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn line(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn with_json_logging_every_line_is_json_to_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = kubelet(directory.path(), &["--logging-format=json"]);
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = Vec::new();
    for text in said.by_ref() {
        let line = line(&text.unwrap());
        let waits = line["msg"].as_str().unwrap().starts_with("waiting for the runtime");
        lines.push(line);
        if waits {
            break;
        }
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    lines.extend(said.map(|text| line(&text.unwrap())));
    child.wait().unwrap();
    assert!(lines.len() > UNKNOWN, "{lines:#?}");
    assert!(
        lines.iter().all(|line| line["ts"].is_f64() && line["caller"].is_string()),
        "{lines:#?}"
    );
}

#[test]
fn a_kubelet_that_cannot_start_says_why_as_json_too() {
    let directory = tempfile::tempdir().unwrap();
    // A file in place of the root directory.
    fs::write(directory.path().join("root"), "").unwrap();
    let child = kubelet(directory.path(), &["--logging-format=json"]);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let text = String::from_utf8(ended.stderr).unwrap();
    let lines: Vec<Value> = text.lines().map(line).collect();
    let last = lines.last().unwrap();
    assert_eq!(last["severity"], "error", "{last}");
    assert!(last["err"].as_str().unwrap().contains("root"), "{last}");
}

#[test]
fn a_log_file_is_rotated_and_stderr_has_only_the_final_error() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("root"), "").unwrap();
    let log = directory.path().join("logs/kubelet.log");
    let file = format!("--log-file={}", log.display());
    let flags =
        ["--logging-format=json", &file, "--log-file-max-size=1Ki", "--log-file-max-files=3"];
    let mut child = kubelet(directory.path(), &flags);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    child.wait().unwrap();
    assert!(stderr.starts_with("oarsman: ") && stderr.lines().count() == 1, "{stderr}");
    let entries = fs::read_dir(log.parent().unwrap()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["kubelet.log", "kubelet.log.1", "kubelet.log.2"]);
    for name in names {
        let text = fs::read_to_string(log.with_file_name(name)).unwrap();
        assert!(text.len() <= 1024, "{text}");
        assert!(text.lines().map(line).count() > 0);
    }
}
