//! The endpoints that show the agent and change it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use tower::ServiceExt;

use super::*;

struct EndpointFixture {
    _directory: TempDir,
    host: Arc<FakeHost>,
    router: Router,
}

fn fixture(change: impl FnOnce(&mut NodeEndpointSettings)) -> EndpointFixture {
    let directory = tempfile::tempdir().unwrap();
    let host = ended(directory.path());
    let mut settings = node_endpoints(directory.path());
    change(&mut settings);
    let state = endpoint_state(Arc::clone(&host) as Arc<dyn HostInterface>);
    let router = endpoints::all(&state, Some(streaming()), &settings);
    EndpointFixture { _directory: directory, host, router }
}

impl EndpointFixture {
    async fn ask(&self, method: Method, path: &str, accept: &str, body: &str) -> (u16, String) {
        let request = Request::builder().method(method).uri(path).header(header::ACCEPT, accept);
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> (u16, String) {
        self.ask(Method::GET, path, "*/*", "").await
    }
}

#[tokio::test]
async fn flags_and_status_are_shown_as_text_where_their_gates_are_on() {
    let on = fixture(|_| {});
    let flags = on.get("/flagz").await;
    assert!(flags.0 == 200 && flags.1.ends_with("\n\nv=2\n"), "{flags:?}");
    let status = on.get("/statusz").await;
    assert!(status.0 == 200 && status.1.contains("\nBinary version: 2\n"), "{status:?}");
    assert!(status.1.contains(" /checkpoint /configz /containerLogs /debug "), "{status:?}");
    for path in ["/flagz", "/statusz"] {
        let refused = on.ask(Method::GET, path, "application/json", "").await;
        assert_eq!(refused.0, 406, "{path}");
    }
    let off = fixture(|settings| (settings.flags, settings.status) = (None, None));
    for path in ["/flagz", "/statusz"] {
        assert_eq!(off.get(path).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn the_verbosity_of_the_log_is_set_by_a_number() {
    let on = fixture(|_| {});
    let set = "successfully set klog.logging.verbosity to 6\n";
    let wrong = "failed set klog.logging.verbosity loud: invalid digit found in string\n";
    let long = "error reading request body: length limit exceeded\n";
    let rows = [
        (Method::PUT, "6", 200, set),
        (Method::PUT, "loud", 400, wrong),
        (Method::PUT, &"9".repeat(100), 400, long),
        (Method::GET, "", 406, "unsupported http method\n"),
        (Method::POST, "9", 406, "unsupported http method\n"),
    ];
    for (method, body, status, said) in rows {
        let answer = on.ask(method.clone(), "/debug/flags/v", "*/*", body).await;
        assert_eq!(answer, (status, said.to_owned()), "{method} {body}");
    }
    assert_eq!(on.host.verbosity.load(Ordering::SeqCst), 6);
    let off = fixture(|settings| settings.debug_flags = false);
    let refused = off.ask(Method::PUT, "/debug/flags/v", "*/*", "6").await;
    assert_eq!(refused, (405, "flags endpoint is disabled.\n".to_owned()));
    assert_eq!(off.host.verbosity.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn profiles_that_do_not_exist_are_not_invented() {
    let on = fixture(|_| {});
    assert_eq!(on.get("/debug/pprof/cmdline").await, (200, "kubelet\0--v=2".to_owned()));
    for path in ["/debug/pprof", "/debug/pprof/"] {
        let listed = on.get(path).await;
        assert!(listed.0 == 200 && listed.1.contains("\ncmdline: "), "{listed:?}");
    }
    for profile in ["heap", "profile", "goroutine", "trace", "symbol"] {
        let said = format!("this kubelet is no Go program: it has no profile {profile:?}\n");
        assert_eq!(on.get(&format!("/debug/pprof/{profile}")).await, (404, said));
    }
    let off = fixture(|settings| settings.command_line = None);
    for path in ["/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/heap"] {
        let refused = (405, "profiling endpoint is disabled.\n".to_owned());
        assert_eq!(off.get(path).await, refused, "{path}");
    }
}

#[tokio::test]
async fn logs_of_the_node_that_are_switched_off_say_so() {
    let off = fixture(|settings| settings.node_logs = None);
    for path in ["/logs", "/logs/", "/logs/syslog"] {
        assert_eq!(off.get(path).await, (405, "logs endpoint is disabled.\n".to_owned()), "{path}");
    }
    assert_eq!(fixture(|_| {}).get("/logs/0.log").await.0, 200);
}

#[tokio::test]
async fn a_checkpoint_is_made_by_post_and_only_where_its_gate_is_on() {
    let on = fixture(|_| {});
    let path = "/checkpoint/default/web/c";
    let failed = on.ask(Method::POST, path, "*/*", "").await;
    assert_eq!(failed.0, 500, "no runtime answers: {failed:?}");
    assert!(failed.1.starts_with("checkpointing of default/web/c failed ("), "{failed:?}");
    assert_eq!(on.get(path).await.0, 405);
    let off = fixture(|settings| settings.checkpoint_root = None);
    assert_eq!(off.ask(Method::POST, path, "*/*", "").await.0, 404);
}

#[tokio::test]
async fn the_read_only_port_has_nothing_that_writes_executes_or_shows_logs() {
    let directory = tempfile::tempdir().unwrap();
    let host = ended(directory.path());
    let router = endpoints::read_only(&endpoint_state(Arc::clone(&host) as _));
    let read_only = EndpointFixture { _directory: directory, host, router };
    let rows = [
        (Method::GET, "/pods", 200),
        (Method::POST, "/pods", 405),
        (Method::POST, "/exec/default/web/c?command=ls&output=1", 404),
        (Method::GET, "/exec/default/web/c?command=ls&output=1", 404),
        (Method::POST, "/attach/default/web/c?output=1", 404),
        (Method::POST, "/portForward/default/web", 404),
        (Method::POST, "/run/default/web/c?cmd=ls", 404),
        (Method::POST, "/checkpoint/default/web/c", 404),
        (Method::PUT, "/debug/flags/v", 404),
        (Method::GET, "/debug/pprof/cmdline", 404),
        (Method::GET, "/containerLogs/default/web/c", 404),
        (Method::GET, "/logs/", 404),
        (Method::GET, "/configz", 404),
        (Method::GET, "/runningpods/", 404),
    ];
    for (method, path, status) in rows {
        let answer = read_only.ask(method.clone(), path, "*/*", "").await;
        assert_eq!(answer.0, status, "{method} {path}: {}", answer.1);
    }
}

#[tokio::test]
async fn health_tells_that_the_log_takes_nothing() {
    let fixture = fixture(|_| {});
    fixture.host.is_log_blocked.store(true, Ordering::SeqCst);
    let rows = [
        ("/healthz/log", 500, "internal server error: it takes nothing\n"),
        (
            "/healthz",
            500,
            "[+]ping ok\n[-]log failed: reason withheld\n[+]syncloop ok\nhealthz check failed\n",
        ),
        (
            "/healthz?exclude=log&verbose",
            200,
            "[+]ping ok\n[+]log excluded: ok\n[+]syncloop ok\nhealthz check passed\n",
        ),
    ];
    for (path, status, said) in rows {
        assert_eq!(fixture.get(path).await, (status, said.to_owned()), "{path}");
    }
}
