//! What a person hands over, in real files and from a real server.

use std::borrow::Borrow;
use std::fs;

use axum::Router;
use axum::routing::get;
use oarsman_core::pod::PodExt;
use tempfile::{TempDir, tempdir};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;
use crate::book::tests::empty_book;
use oarsman_net::SystemNetwork;

/// A failure, not a wait: what is waited for comes in milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: web:1
    envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: login, optional: true}}]
";

const SETTINGS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: red}
";

struct Site(TempDir);

impl Site {
    fn new(files: &[(&str, &str)]) -> Self {
        let site = Self(tempdir().unwrap());
        files.iter().for_each(|(name, text)| site.write(name, text));
        site
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    async fn read(&self, names: &[&str]) -> Result<Bundle, Vec<String>> {
        let places: Vec<String> = names.iter().map(|name| self.path(name)).collect();
        read(&places).await.map_err(|said| {
            let root = self.path("");
            said.into_iter().map(|line| line.replace(&root, "")).collect()
        })
    }
}

async fn read(places: &[String]) -> Result<Bundle, Vec<String>> {
    let read = read_once(places, "node", Arc::new(SystemNetwork)).await;
    read.map_err(|remarks| remarks.iter().map(ToString::to_string).collect())
}

fn names(pods: &[impl Borrow<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.borrow().full_name().to_string()).collect()
}

fn colour(objects: &Lookup) -> Option<String> {
    let map = objects.config_maps.values().next()?;
    map.data.as_ref()?.get("colour").cloned()
}

#[tokio::test]
async fn pods_keep_their_names_and_find_what_they_refer_to_in_any_of_the_places() {
    let both = format!("{POD}---\n{SETTINGS}");
    let list = "apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: settings}}]";
    let rows: [&[(&str, &str)]; 4] = [
        &[("a.yaml", &both)],
        &[("b.yaml", POD), ("a.yaml", SETTINGS)],
        &[
            ("a.yml", POD),
            ("c.json", r#"{"apiVersion": "v1", "kind": "List", "items": []}"#),
            ("b.yaml", SETTINGS),
        ],
        &[("a.yaml", POD), ("b.yaml", list)],
    ];
    for files in rows {
        let site = Site::new(files);
        let bundle = site.read(&[""]).await.unwrap();
        assert_eq!(names(bundle.pods()), ["web_default"]);
        assert_eq!(bundle.objects().borrow().config_maps.len(), 1);
        assert_eq!(bundle.warnings(), []);
        let one_by_one: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let again = site.read(&one_by_one).await.unwrap();
        assert_eq!(again.pods(), bundle.pods(), "by directory or by file, it is the same pod");
    }
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once_and_names_its_place() {
    let site = Site::new(&[
        ("two.yaml", &format!("{SETTINGS}---\n{SETTINGS}---\n{POD}")),
        ("alone.yaml", POD),
        ("far.yaml", &SETTINGS.replace("{name: settings}", "{name: settings, namespace: far}")),
        ("key.yaml", &POD.replace("envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: login, optional: true}}]",
            "env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: colours}}}]")),
        ("settings.yaml", SETTINGS),
        ("token.yaml", &POD.replace("spec:\n", "spec:\n  serviceAccountName: me\n")),
    ]);
    let rows: [(&[&str], &[&str]); 7] = [
        (
            &["two.yaml"],
            &[
                "two.yaml, document 2: ConfigMap \"settings\" of namespace \"default\" is in two.yaml, document 1, too: give one of the two another name",
            ],
        ),
        (
            &["alone.yaml"],
            &[
                "alone.yaml: the pod refers to ConfigMap \"settings\", which is not given: add it to the file, or mark the reference optional",
            ],
        ),
        (
            &["alone.yaml", "far.yaml"],
            &[
                "alone.yaml: the pod is in namespace \"default\" and ConfigMap \"settings\" in \"far\": put both into one namespace",
            ],
        ),
        (
            &["key.yaml", "settings.yaml"],
            &[
                "key.yaml: the pod refers to key \"colours\" of ConfigMap \"settings\", which has colour: correct the key, or mark the reference optional",
            ],
        ),
        (
            &["token.yaml", "settings.yaml"],
            &[
                "token.yaml: the pod refers to a service account, which only a cluster has: take spec.serviceAccountName out of the pod",
            ],
        ),
        (
            &["settings.yaml"],
            &["settings.yaml: there is no Pod in it: add one (apiVersion: v1, kind: Pod)"],
        ),
        (
            &["gone.yaml", "nor-this"],
            &[
                "gone.yaml: it does not exist: give a file, a directory or a URL",
                "nor-this: it does not exist: give a file, a directory or a URL",
            ],
        ),
    ];
    for (places, want) in rows {
        assert_eq!(site.read(places).await.err().unwrap(), want);
    }
}

#[tokio::test]
async fn what_changes_later_is_told_and_what_breaks_goes_on() {
    let site = Site::new(&[("a.yaml", POD), ("b.yaml", SETTINGS)]);
    let bundle = site.read(&["a.yaml", "b.yaml"]).await.unwrap();
    let mut objects = bundle.objects();
    let mut sets = bundle.follow(Periods { rescan: HOUR, fetch: HOUR }, &empty_book());
    assert_eq!(names(&sets.next().await.unwrap()), ["web_default"]);

    site.write("b.yaml", &SETTINGS.replace("red", "blue"));
    let told = async {
        tokio::select! {
            changed = objects.changed() => changed.unwrap(),
            pods = sets.next() => panic!("no pod has changed: {:?}", pods.map(|pods| names(&pods))),
        }
    };
    timeout(PATIENCE, told).await.expect("nobody told of the edit");
    assert_eq!(colour(&objects.borrow_and_update()).as_deref(), Some("blue"));

    // The broken manifest keeps its pod, and one that does not fit the others changes nothing.
    site.write("b.yaml", &SETTINGS.replace("name: settings", "name: other"));
    site.write("a.yaml", "nonsense: [");
    site.write("b.yaml", &SETTINGS.replace("red", "green"));
    site.write("a.yaml", &POD.replace("name: web", "name: next"));
    let next = timeout(PATIENCE, sets.next()).await.expect("no set came").unwrap();
    assert_eq!(names(&next), ["next_default"]);
    fs::remove_file(site.path("a.yaml")).unwrap();
    let gone = timeout(PATIENCE, sets.next()).await.expect("no set came").unwrap();
    assert_eq!(names(&gone), [""; 0]);
}

#[tokio::test]
async fn a_url_is_a_place_like_any_other_and_its_password_is_shown_to_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let both = format!("{SETTINGS}---\n{POD}");
    let pages = Router::new().route("/web.yaml", get(async move || both));
    let server = tokio::spawn(async move { axum::serve(listener, pages).await.unwrap() });
    let at = |path: &str| vec![format!("http://me:hunter2@127.0.0.1:{port}/{path}")];
    assert_eq!(names(read(&at("web.yaml")).await.unwrap().pods()), ["web_default"]);
    let missing = read(&at("none")).await.err().unwrap();
    let want = format!("http://127.0.0.1:{port}/none: it answered with status 404 instead of 200");
    assert_eq!(missing, [want]);
    let ftp = read(&["ftp://me:hunter2@host/pod.yaml".to_owned()]).await.err().unwrap();
    let want = "ftp://host/pod.yaml: manifests come over http and https, not over \"ftp\"";
    assert_eq!(ftp, [want]);
    server.abort();
}

#[tokio::test]
async fn slips_of_the_pen_are_warnings() {
    let slip = SETTINGS.to_owned() + "datum: {}\n";
    let site = Site::new(&[("a.yaml", &format!("{POD}---\n{slip}"))]);
    let bundle = site.read(&["a.yaml"]).await.unwrap();
    let want =
        ", document 2: no ConfigMap has these fields, so they do nothing: datum; correct them";
    let said: Vec<String> = bundle.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(said, [site.path("a.yaml") + want]);
}
