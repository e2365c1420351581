//! The program with manifests that cannot be run: each is refused before anything is started, with a message that says where the fault is, what
//! it is, and what to do.

mod rows;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use rows::{GOOD, POD, ROWS};
use tempfile::tempdir;

/// `oarsman run` of these paths in that directory, on a machine without a runtime: a run that got so far would fail with that.
fn run(directory: &Path, places: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarsman"));
    command.current_dir(directory).arg("run").args(places);
    command.args([
        "--runtime",
        "unix:///nowhere",
        "--root-dir",
        "root",
        "--hostname-override",
        "n",
    ]);
    command.output().unwrap_or_else(|error| panic!("the program does not run: {error}"))
}

/// The error for paths with bad manifests.
fn refused(directory: &Path, places: &[&str]) -> String {
    let output = run(directory, places);
    assert_eq!(output.status.code(), Some(1), "{places:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{places:?}");
    assert!(!directory.join("root").exists(), "{places:?}: nothing is touched");
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.strip_prefix("oarsman: nothing is run:\n  ");
    lines.unwrap_or_else(|| panic!("{places:?}: {said}")).trim_end().to_owned()
}

#[test]
fn the_error_of_a_bad_manifest_says_how_to_fix_it() {
    let directory = tempdir().unwrap();
    assert!(ROWS.len() > 50, "there are enough of them");
    for (name, text, says) in ROWS {
        let file = format!("{name}.yaml");
        let text = text.replace("{GOOD}", GOOD).replace("{POD}", POD);
        fs::write(directory.path().join(&file), text).unwrap();
        assert_eq!(refused(directory.path(), &[&file]), format!("{file}{says}"));
    }
}

#[test]
fn a_file_that_is_not_text_is_refused() {
    let directory = tempdir().unwrap();
    let rows: [(&str, &[u8], usize); 2] =
        [("program", b"\x7fELF\x02\x01\x01\x00", 8), ("latin1", b"# gr\xfc\xdfe\n", 5)];
    for (file, bytes, at) in rows {
        fs::write(directory.path().join(file), bytes).unwrap();
        let want = format!(
            "{file}: it is not text: byte {at} is none that UTF-8 has there; write it in YAML or JSON"
        );
        assert_eq!(refused(directory.path(), &[file]), want);
    }
}

#[test]
fn a_path_or_url_without_manifests_is_named() {
    let directory = tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("empty")).unwrap();
    fs::create_dir(at.join("other")).unwrap();
    fs::write(at.join("other/README.md"), "hello").unwrap();
    std::os::unix::fs::symlink("nowhere", at.join("link.yaml")).unwrap();
    fs::write(at.join("settings.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
        .unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://me:hunter2@127.0.0.1:{nobody}/web.yaml?token=hunter2");
    let refuses = format!(
        "http://127.0.0.1:{nobody}/web.yaml: cannot reach http://127.0.0.1:{nobody}/web.yaml: "
    );
    let none = "no file in it ends in .yaml, .yml or .json: put a manifest there";
    let rows = [
        ("gone.yaml", "gone.yaml: it does not exist: give a file, a directory or a URL".to_owned()),
        ("empty", format!("empty: {none}")),
        ("other", format!("other: {none}")),
        (
            "link.yaml",
            "link.yaml: it is a symbolic link to nothing; mend the link, or remove it".to_owned(),
        ),
        (
            "settings.yaml",
            "settings.yaml: there is no Pod in it: add one (apiVersion: v1, kind: Pod)".to_owned(),
        ),
        (
            "ftp://host/web.yaml",
            "ftp://host/web.yaml: manifests come over http and https, not over \"ftp\"".to_owned(),
        ),
    ];
    for (place, want) in rows {
        assert_eq!(refused(at, &[place]), want);
    }
    let said = refused(at, &[&url]);
    assert!(said.starts_with(&refuses) && !said.contains("hunter2"), "{said}");
}

#[test]
fn all_problems_are_reported_at_once() {
    let directory = tempdir().unwrap();
    let broken = "apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Pod\n";
    fs::write(directory.path().join("a.yaml"), broken).unwrap();
    fs::write(directory.path().join("b.yaml"), GOOD.replace("image: web:1", "")).unwrap();
    let said = refused(directory.path(), &["a.yaml", "b.yaml", "gone"]);
    let places: Vec<&str> =
        said.lines().filter_map(|line| line.trim().split(": ").next()).collect();
    assert_eq!(places, ["a.yaml, document 1", "a.yaml, document 2", "b.yaml", "gone"]);
}

#[test]
fn a_misspelt_field_is_a_warning() {
    let directory = tempdir().unwrap();
    let slip = format!("{GOOD}  volumes: [{{name: data, memory: {{}}}}]\n");
    fs::write(directory.path().join("a.yaml"), slip).unwrap();
    let said = String::from_utf8(run(directory.path(), &["a.yaml"]).stderr).unwrap();
    let want =
        "a.yaml: no Pod has these fields, so they do nothing: spec.volumes[0].memory; correct them";
    assert_eq!(said.lines().next(), Some(want));
    assert!(said.contains("no runtime listens at /nowhere"), "the manifest is good: {said}");
}
