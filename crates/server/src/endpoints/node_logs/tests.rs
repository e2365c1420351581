//! Files of a log directory, and queries that a script answers in place of journalctl.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use axum::body::to_bytes;
use axum::http::Request;
use oarsman_sync::TaskPanics;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use tower::ServiceExt;

use super::*;

struct LogsFixture {
    root: TempDir,
    router: Router,
}

/// Lists the units `known.service` and `endless.service`, and prints its arguments, once or without end.
const JOURNALCTL: &str = "#!/bin/sh
case \"$1\" in
--field*) echo known.service; echo endless.service; echo other.service.more;;
*) case \"$*\" in *endless*) while :; do echo y; done;; esac
   for word in \"$@\"; do echo \"$word\"; done;;
esac
";

fn fixture(has_queries: bool) -> LogsFixture {
    let root = tempfile::tempdir().unwrap();
    let logs = root.path().join("log");
    fs::create_dir_all(logs.join("apt")).unwrap();
    fs::create_dir_all(logs.join("deep")).unwrap();
    fs::write(logs.join("apt/history.log"), "history\n").unwrap();
    fs::write(logs.join("deep/deep.log"), "deep\n").unwrap();
    fs::write(logs.join("a+b c.log"), "plus\n").unwrap();
    fs::write(logs.join("wtmp"), [1, 0, 2]).unwrap();
    fs::write(logs.join("large"), "x".repeat(200_000)).unwrap();
    fs::write(root.path().join("secret"), "secret").unwrap();
    symlink("../secret", logs.join("link")).unwrap();
    symlink("/etc", logs.join("etc")).unwrap();
    mknodat(CWD, logs.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let program = root.path().join("journalctl");
    fs::write(&program, JOURNALCTL).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let state = NodeLogState {
        directory: logs,
        has_queries,
        reads: LogLimits::new(TaskPanics::default()),
        responses: Arc::new(Semaphore::new(MAX_RESPONSES)),
        queries: Arc::new(Semaphore::new(MAX_QUERIES)),
        journal: Journal { program },
    };
    LogsFixture { router: with_state(Arc::new(state)), root }
}

impl LogsFixture {
    async fn response(&self, path: &str) -> Response {
        let request = Request::get(path).body(Body::empty()).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn ask(&self, path: &str) -> (u16, String) {
        let response = self.response(path).await;
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}

#[tokio::test]
async fn files_are_sent_and_directories_are_listed() {
    let fixture = fixture(false);
    let rows = [
        ("/logs/apt/history.log", 200, "history\n"),
        ("/logs/a+b%20c.log", 200, "plus\n"),
        ("/logs/apt/", 200, "<a href=\"history.log\">history.log</a>\n"),
        ("/logs/", 200, "<a href=\"apt/\">apt/</a>\n"),
        ("/logs", 200, "<a href=\"apt/\">apt/</a>\n"),
        ("/logs/none.log", 404, "cannot be read"),
        ("/logs/apt/history.log/x", 404, "cannot be read"),
        // Without the setting, a query is a request for the list.
        ("/logs/?query=known", 200, "<a href=\"apt/\">apt/</a>\n"),
    ];
    for (path, status, said) in rows {
        let answer = fixture.ask(path).await;
        assert!(answer.0 == status && answer.1.contains(said), "{path}: {answer:?}");
    }
    assert_eq!(fixture.ask("/logs/large").await, (200, "x".repeat(200_000)));
}

#[tokio::test]
async fn nothing_outside_the_directory_and_nothing_but_files_is_read() {
    let fixture = fixture(true);
    for path in [
        "/logs/link",
        "/logs/etc/passwd",
        "/logs/etc/",
        "/logs/pipe",
        "/logs/../secret",
        "/logs/%2e%2e/secret",
        "/logs/apt/..%2f..%2fsecret",
        "/logs/?query=/link",
    ] {
        let answer = fixture.ask(path).await;
        assert_eq!(answer.0, 403, "{path}: {answer:?}");
        assert!(!answer.1.contains("root:"), "{path}");
    }
}

#[tokio::test]
async fn a_path_with_a_slash_too_many_or_too_few_is_redirected() {
    let fixture = fixture(false);
    let rows = [
        ("/logs/apt", "apt/"),
        ("/logs/apt/history.log/", "../history.log"),
        ("/logs/a+b%20c.log/", "../a%2Bb%20c.log"),
    ];
    for (path, to) in rows {
        let response = fixture.response(path).await;
        assert_eq!(response.status(), StatusCode::MOVED_PERMANENTLY, "{path}");
        assert_eq!(response.headers()[header::LOCATION], to, "{path}");
    }
}

#[tokio::test]
async fn texts_are_told_from_other_bytes() {
    let fixture = fixture(false);
    let rows = [
        ("/logs/apt/history.log", "text/plain; charset=utf-8"),
        ("/logs/wtmp", "application/octet-stream"),
        ("/logs/", "text/html; charset=utf-8"),
    ];
    for (path, kind) in rows {
        assert_eq!(fixture.response(path).await.headers()[header::CONTENT_TYPE], kind, "{path}");
    }
}

#[tokio::test]
async fn a_query_is_answered_by_the_journal_or_by_a_file() {
    let fixture = fixture(true);
    let journal =
        "--utc\n--no-pager\n--lines=5\n--unit=known\n--grep=$(x) y\n--output=short-precise\n";
    let refused = "\noptions present and query resolved to log files for [deep]\ntry without specifying options\n";
    let rows = [
        ("?query=known&tailLines=5&pattern=%24(x)+y", 200, journal),
        ("?query=deep", 200, "deep\n"),
        ("?query=other", 200, "\nlog not found for other\n"),
        (
            "?query=link",
            200,
            "\nerror getting log for link: it is a symbolic link and no regular file\n",
        ),
        ("?query=deep&boot=0", 200, refused),
        ("?query=/apt/history.log", 200, "history\n"),
        (
            "?query=a%3Bb",
            406,
            "query \"a;b\" has other characters than letters, digits, -, _ and @\n",
        ),
        ("?query=known&tailLines=x", 400, "tailLines=\"x\" cannot be read; write a number\n"),
        ("apt/?query=known", 406, "path not allowed in query mode\n"),
    ];
    for (query, status, said) in rows {
        let answer = fixture.ask(&format!("/logs/{query}")).await;
        assert_eq!(answer, (status, said.to_owned()), "{query}");
    }
}

#[tokio::test]
async fn a_machine_without_journal_has_files() {
    let fixture = fixture(true);
    fs::remove_file(fixture.root.path().join("journalctl")).unwrap();
    assert_eq!(fixture.ask("/logs/?query=deep").await, (200, "deep\n".to_owned()));
    let answer = fixture.ask("/logs/?query=known").await;
    assert_eq!(answer, (200, "\nlog not found for known\n".to_owned()));
}

#[tokio::test]
async fn responses_and_queries_are_limited_and_make_room_when_they_end() {
    let fixture = fixture(true);
    let mut stalled = Vec::new();
    for _ in 0..MAX_QUERIES {
        stalled.push(fixture.response("/logs/?query=endless").await);
    }
    assert_eq!(fixture.ask("/logs/?query=known").await.0, 429);
    for _ in MAX_QUERIES..MAX_RESPONSES {
        stalled.push(fixture.response("/logs/large").await);
    }
    assert_eq!(fixture.ask("/logs/large").await.0, 429);
    to_bytes(stalled.pop().unwrap().into_body(), 1 << 20).await.unwrap();
    assert_eq!(fixture.ask("/logs/apt/").await.0, 200);
}
