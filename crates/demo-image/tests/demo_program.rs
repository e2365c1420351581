//! The demo program, as it is in the image.

#![expect(clippy::unwrap_used, reason = "all of this is tests")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use oarsman_demo_image::{archive, program};
use tempfile::TempDir;

fn demo(scratch: &TempDir) -> PathBuf {
    let path = scratch.path().join("demo");
    let mut file = fs::File::create(&path).unwrap();
    let Some(bytes) = program() else { panic!("a static C library is needed") };
    file.write_all(bytes).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn run(demo: &Path, words: &[&str]) -> Output {
    Command::new(demo).args(words).env("COLOUR", "teal").output().unwrap()
}

#[test]
fn steps_are_done_one_after_the_other() {
    let scratch = tempfile::tempdir().unwrap();
    let demo = demo(&scratch);
    let file = scratch.path().join("file").display().to_string();
    let words = [
        "write", &file, "one", "then", "append", &file, "two", "then", "show", &file, "then",
        "count", &file, "then", "env", "COLOUR", "then", "wait", &file, "then", "sleep", "0",
        "then", "print", "last", "then", "exit", "7", "then", "print", "never",
    ];
    let done = run(&demo, &words);
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(said, format!("one\ntwo\n{file} has 7 letters\nteal\nlast\n"));
    assert_eq!(done.status.code(), Some(7));
}

#[test]
fn a_wrong_step_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let demo = demo(&scratch);
    for (words, said) in [
        (&["dance"][..], "demo: there is no step [\"dance\"]"),
        (&["exit", "many"], "demo: \"many\" is not such a number"),
        (&["show", "/no/such"], "demo: /no/such: No such file"),
        (&["serve", "--loud"], "demo: serve has no option [\"--loud\"]"),
    ] {
        let done = run(&demo, words);
        let error = String::from_utf8(done.stderr).unwrap();
        assert!(error.starts_with(said), "{error}");
        assert_eq!(done.status.code(), Some(1));
    }
    assert_eq!(run(&demo, &["crash"]).status.code(), None);
}

/// A server, its address, and its log; ended when it is dropped.
struct Server {
    process: Child,
    address: String,
    _log: BufReader<ChildStdout>,
}

impl Server {
    fn start(demo: &Path, options: &[&str]) -> Self {
        let mut server = Command::new(demo);
        // Of port 0 it would not tell which one it got, so it gets one that was free a moment ago.
        let free = std::net::TcpListener::bind("[::]:0").unwrap().local_addr().unwrap().port();
        server.args(["serve", "--port", &free.to_string()]).args(options).stdout(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut said = String::new();
        let mut log = BufReader::new(server.stdout.take().unwrap());
        log.read_line(&mut said).unwrap();
        assert_eq!(said, format!("listening on port {free}\n"));
        Self { process: server, address: format!("127.0.0.1:{free}"), _log: log }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn the_server_greets() {
    let scratch = tempfile::tempdir().unwrap();
    let demo = demo(&scratch);
    let server = Server::start(&demo, &[]);
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let done = run(&demo, &["get", &server.address]);
    assert_eq!(String::from_utf8(done.stdout).unwrap(), format!("hello from {hostname}"));
}

#[test]
fn the_server_shows_the_files_of_its_directory_and_no_others() {
    let scratch = tempfile::tempdir().unwrap();
    let demo = demo(&scratch);
    let www = scratch.path().join("www");
    fs::create_dir(&www).unwrap();
    fs::write(www.join("index.html"), "the page\n").unwrap();
    fs::write(scratch.path().join("secret"), "not for you\n").unwrap();
    let server = Server::start(&demo, &["--directory", &www.display().to_string()]);
    let get = |path: &str| run(&demo, &["get", &format!("http://{}{path}", server.address)]);
    assert_eq!(get("/").stdout, b"the page\n");
    assert_eq!(get("/index.html").stdout, b"the page\n");
    let refused = get("/../secret");
    assert!(refused.stdout.is_empty());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("404 Not Found"));
}

#[test]
fn the_archive_is_the_same_every_time() {
    assert_eq!(archive().unwrap(), archive().unwrap());
}
