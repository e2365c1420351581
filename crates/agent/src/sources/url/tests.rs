//! Asking a real server on this machine, and reading URLs.

use std::path::Path;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use k8s_openapi::api::core::v1::Pod;
use oarsman_core::static_pod::ManifestOrigin;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;
use crate::report_store::tests::empty_report_store;
use crate::sources::manifest_reader::ParsedManifest;
use crate::sources::message::ManifestProblem;
use oarsman_net::SystemNetwork;

const PATIENCE: Duration = Duration::from_secs(60);
const OFTEN: Duration = Duration::from_millis(10);

fn pod(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: a, image: b}}]}}\n"
    )
}

#[tokio::test]
async fn a_url_is_polled_and_failures_keep_its_pods() {
    let saying = Arc::new(Mutex::new((StatusCode::OK, pod("a"))));
    let (page, heard) = (Arc::clone(&saying), Arc::new(Mutex::new(Vec::new())));
    let ears = Arc::clone(&heard);
    let answer = async move |headers: HeaderMap| {
        let summary = |name: &str| headers.get(name).map(|v| v.to_str().unwrap().to_owned());
        ears.lock().unwrap().push((summary("authorization"), summary("x-role")));
        page.lock().unwrap().clone()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pages = Router::new().route("/pods", get(answer));
    let server = tokio::spawn(async move { axum::serve(listener, pages).await.unwrap() });
    let headers = vec![("X-Role".to_owned(), "node".to_owned())];
    let place = format!("http://me:p%40ss@127.0.0.1:{port}/pods");
    let url = ManifestUrl::new(&place, headers, "n".to_owned(), Arc::new(SystemNetwork)).unwrap();
    let mut sets = url.follow(OFTEN, &empty_report_store());
    let mut next = async || {
        let set = timeout(PATIENCE, sets.next()).await.expect("no set came").unwrap();
        set.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(next().await, ["a-n"]);
    let basic = Some("Basic bWU6cEBzcw==".to_owned());
    assert_eq!(heard.lock().unwrap()[0], (basic, Some("node".to_owned())));
    *saying.lock().unwrap() = (StatusCode::OK, pod("b"));
    assert_eq!(next().await, ["b-n"]);
    *saying.lock().unwrap() = (StatusCode::INTERNAL_SERVER_ERROR, pod("c"));
    let (asked, failing) = (heard.lock().unwrap().len(), async {
        // Nothing comes of any number of failures; the next set is what the server says when it is well.
        while heard.lock().unwrap().len() < 10 {
            sleep(OFTEN).await;
        }
        *saying.lock().unwrap() = (StatusCode::OK, pod("d"));
    });
    assert!(asked >= 2);
    let ((), set) = tokio::join!(failing, next());
    assert_eq!(set, ["d-n"]);
    server.abort();
}

#[test]
fn a_url_becomes_a_request() {
    let rows = [
        ("http://web/pods", ("http://web:80/pods", "/pods")),
        ("https://web", ("https://web:443/", "/")),
        ("https://web:8443/a?b=c#d", ("https://web:8443/a", "/a?b=c")),
        ("http://[fd00::1]:8080/", ("http://[fd00::1]:8080/", "/")),
        ("http://me:secret@web/pods", ("http://web:80/pods", "/pods")),
    ];
    for (given, want) in rows {
        let request = request(given, Vec::new()).unwrap();
        assert_eq!((request.url().as_str(), request.path_and_query.as_str()), want, "{given}");
        assert_eq!(request.trust, Trust::System);
        assert_eq!((request.timeout, request.body_limit), (Duration::from_secs(10), 10 << 20));
    }
}

#[test]
fn a_login_in_the_url_is_sent_unless_a_header_says_otherwise() {
    let given = vec![("authorization".to_owned(), "Bearer mine".to_owned())];
    let rows = [
        ("http://web/", vec![], vec![]),
        ("http://me:p%40s%s@web/", vec![], vec![header("Basic bWU6cEBzJXM=")]),
        ("http://me@web/", vec![], vec![header("Basic bWU6")]),
        ("http://me:pass@web/", given.clone(), given),
    ];
    for (url, given, want) in rows {
        assert_eq!(request(url, given).unwrap().headers, want, "{url}");
    }
}

fn header(value: &str) -> (String, String) {
    ("Authorization".to_owned(), value.to_owned())
}

#[test]
fn an_unusable_url_is_refused_without_showing_its_password() {
    for given in ["", "web", "/pods", "ftp://me:secret@web/", "http://me:secret@/", "http://a b/"] {
        let summary = request(given, Vec::new()).unwrap_err().to_string();
        assert!(!summary.contains("secret"), "{given}: {summary}");
    }
}

/// Notes the threads on which it parses.
struct RecordingReader {
    reader: PodOrListReader,
    threads: Arc<Mutex<Vec<ThreadId>>>,
}

impl ManifestReader for RecordingReader {
    type Item = <PodOrListReader as ManifestReader>::Item;

    const REQUIRED: bool = PodOrListReader::REQUIRED;

    fn is_manifest(path: &Path) -> bool {
        PodOrListReader::is_manifest(path)
    }

    fn read(
        &self,
        bytes: &[u8],
        origin: &ManifestOrigin,
        held: &[Self::Item],
    ) -> Result<ParsedManifest<Self::Item>, Vec<ManifestProblem>> {
        self.threads.lock().unwrap().push(thread::current().id());
        self.reader.read(bytes, origin, held)
    }

    fn name(item: &Self::Item) -> String {
        PodOrListReader::name(item)
    }

    fn pod(item: &Self::Item) -> Option<&Pod> {
        PodOrListReader::pod(item)
    }
}

/// Row H19 of docs/security.md.
#[tokio::test]
async fn a_body_is_parsed_on_a_thread_for_blocking_work() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/pods", listener.local_addr().unwrap());
    let pages = Router::new().route("/pods", get(async || pod("a")));
    let server = tokio::spawn(async move { axum::serve(listener, pages).await.unwrap() });
    let threads = Arc::<Mutex<Vec<ThreadId>>>::default();
    let reader = PodOrListReader { node: "n".to_owned() };
    let reader = RecordingReader { reader, threads: Arc::clone(&threads) };
    let source = UrlSource::at(&url, Vec::new(), reader, Arc::new(SystemNetwork));
    let update = source.unwrap().fetch().await.unwrap();
    assert_eq!(update.items.unwrap().len(), 1);
    let threads = threads.lock().unwrap();
    assert!(threads.len() == 1 && !threads.contains(&thread::current().id()));
    server.abort();
}
