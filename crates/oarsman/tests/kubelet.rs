//! The program as a kubelet before its agent starts: name, version, help, and errors of flags and configuration.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

#[expect(clippy::unwrap_used, reason = "without the program there is nothing to test")]
fn run(program: &Path, words: &[&str]) -> Output {
    Command::new(program).args(words).output().unwrap()
}

fn kubelet(words: &[&str]) -> Output {
    let words: Vec<&str> = ["kubelet"].into_iter().chain(words.iter().copied()).collect();
    run(env!("CARGO_BIN_EXE_oarsman").as_ref(), &words)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_link_called_kubelet_is_a_kubelet() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("kubelet");
    symlink(env!("CARGO_BIN_EXE_oarsman"), &link).unwrap();
    let version = run(&link, &["--version"]);
    assert!(version.status.success());
    assert_eq!(stdout(&version), stdout(&kubelet(&["--version"])));
    let refused = run(&link, &["run"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("run: is no flag"), "{}", stderr(&refused));
}

#[test]
fn the_version_is_one_that_tools_can_read() {
    let said = stdout(&kubelet(&["--version"]));
    let version =
        said.strip_prefix("Kubernetes v").and_then(|rest| rest.strip_suffix('\n')).unwrap();
    let (kubernetes, ours) = version.split_once('+').unwrap();
    let numbers: Vec<u32> = kubernetes.split('.').map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers[..2], [1, 36]);
    assert!(ours.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-'), "{ours}");
}

#[test]
fn the_help_is_the_kubelets_own() {
    let help = kubelet(&["--help"]);
    assert!(help.status.success());
    let said = stdout(&help);
    assert!(said.contains("--config=TEXT") && said.contains("Examples:"), "{said}");
}

#[test]
fn the_error_of_a_bad_configuration_names_the_file_and_every_field() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubelet.yaml");
    let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    fs::write(&file, format!("{head}evictionHard: {{memory.available: 10x}}\nmaxPods: many\n"))
        .unwrap();
    let refused = kubelet(&["--config", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(
        said.contains(&format!("{}: evictionHard[\"memory.available\"]: ", file.display())),
        "{said}"
    );
    assert!(said.contains(&format!("{}: maxPods: ", file.display())), "{said}");
}

#[test]
fn a_configuration_that_is_not_there_is_named_with_its_flag() {
    let refused = kubelet(&["--config=/nowhere/kubelet.yaml"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(said.contains("/nowhere/kubelet.yaml (--config)"), "{said}");
}

#[test]
fn all_bad_flags_are_named_in_the_error() {
    let refused = kubelet(&["--max-pod=5", "--network-plugin=cni"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(
        said.contains("did you mean --max-pods?") && said.contains("since Kubernetes 1.24"),
        "{said}"
    );
}
