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
use crate::report_store::tests::empty_report_store;
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

struct ManifestDirectory(TempDir);

impl ManifestDirectory {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = Self(tempdir().unwrap());
        files.iter().for_each(|(name, text)| directory.write(name, text));
        directory
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    async fn read(&self, names: &[&str]) -> Result<ManifestSet, Vec<String>> {
        let places: Vec<String> = names.iter().map(|name| self.path(name)).collect();
        read(&places).await.map_err(|summary| {
            let root = self.path("");
            summary.into_iter().map(|message| message.replace(&root, "")).collect()
        })
    }
}

async fn read(places: &[String]) -> Result<ManifestSet, Vec<String>> {
    let read = read_once(places, "node", Arc::new(SystemNetwork)).await;
    read.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn names(pods: &[impl Borrow<Pod>]) -> Vec<String> {
    pods.iter().map(|pod| pod.borrow().full_name().to_string()).collect()
}

fn colour(objects: &Lookup) -> Option<String> {
    let map = objects.config_maps.values().next()?;
    map.data.as_ref()?.get("colour").cloned()
}

#[tokio::test]
async fn references_are_resolved_across_all_locations() {
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
        let directory = ManifestDirectory::new(files);
        let manifest_set = directory.read(&[""]).await.unwrap();
        assert_eq!(names(manifest_set.pods()), ["web_default"]);
        assert_eq!(manifest_set.objects().borrow().config_maps.len(), 1);
        assert_eq!(manifest_set.warnings(), []);
        let one_by_one: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let again = directory.read(&one_by_one).await.unwrap();
        assert_eq!(
            again.pods(),
            manifest_set.pods(),
            "by directory or by file, it is the same pod"
        );
    }
}

#[tokio::test]
async fn all_problems_are_reported_at_once_with_their_location() {
    let directory = ManifestDirectory::new(&[
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
        assert_eq!(directory.read(places).await.err().unwrap(), want);
    }
}

#[tokio::test]
async fn changes_are_reported_and_a_broken_manifest_keeps_its_objects() {
    let directory = ManifestDirectory::new(&[("a.yaml", POD), ("b.yaml", SETTINGS)]);
    let manifest_set = directory.read(&["a.yaml", "b.yaml"]).await.unwrap();
    let mut objects = manifest_set.objects();
    let mut sets =
        manifest_set.follow(PollPeriods { rescan: HOUR, fetch: HOUR }, &empty_report_store());
    assert_eq!(names(&sets.next().await.unwrap()), ["web_default"]);

    directory.write("b.yaml", &SETTINGS.replace("red", "blue"));
    let told = async {
        tokio::select! {
            changed = objects.changed() => changed.unwrap(),
            pods = sets.next() => panic!("no pod has changed: {:?}", pods.map(|pods| names(&pods))),
        }
    };
    timeout(PATIENCE, told).await.expect("the edit was not reported");
    assert_eq!(colour(&objects.borrow_and_update()).as_deref(), Some("blue"));

    // The broken manifest keeps its pod, and one that does not fit the others changes nothing.
    directory.write("b.yaml", &SETTINGS.replace("name: settings", "name: other"));
    directory.write("a.yaml", "nonsense: [");
    directory.write("b.yaml", &SETTINGS.replace("red", "green"));
    directory.write("a.yaml", &POD.replace("name: web", "name: next"));
    let next = timeout(PATIENCE, sets.next()).await.expect("no set came").unwrap();
    assert_eq!(names(&next), ["next_default"]);
    fs::remove_file(directory.path("a.yaml")).unwrap();
    let gone = timeout(PATIENCE, sets.next()).await.expect("no set came").unwrap();
    assert_eq!(names(&gone), [""; 0]);
}

#[tokio::test]
async fn a_url_is_a_location_and_its_password_is_not_shown() {
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
async fn unknown_fields_are_warnings() {
    let slip = SETTINGS.to_owned() + "datum: {}\n";
    let directory = ManifestDirectory::new(&[("a.yaml", &format!("{POD}---\n{slip}"))]);
    let manifest_set = directory.read(&["a.yaml"]).await.unwrap();
    let want =
        ", document 2: no ConfigMap has these fields, so they do nothing: datum; correct them";
    let summary: Vec<String> = manifest_set.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(summary, [directory.path("a.yaml") + want]);
}

/// Row H23 of docs/security.md.
#[test]
fn places_are_named_without_logins_and_queries() {
    let places = ["https://me:secret@host/pods?token=secret", "http://host/a?b=secret", "/etc/a?b"];
    let shown = shown_locations(&places.map(str::to_owned));
    assert_eq!(shown, "https://host/pods, http://host/a, /etc/a?b");
}
