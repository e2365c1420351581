//! ConfigMaps and Secrets of pods: read when they start, and updated while they run.

use anyhow::Result;
use oarsman_e2e::cluster::{MAX_WAIT, TestCluster};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{image, pod};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images;
use serde_json::{Value, json};

/// Prints the values, then each new one.
const SCRIPT: &str = r#"
echo "word $WORD"
echo "port $KUBERNETES_SERVICE_PORT"
echo "parts of a token $(tr . '\n' < /var/run/secrets/kubernetes.io/serviceaccount/token | grep -c .)"
last=
while true; do
  now="$(cat /words/word) $(cat /hidden/word)"
  [ "$now" = "$last" ] || echo "files $now"
  last=$now
  sleep 0.1
done"#;

pub(super) async fn config_maps_and_secrets_of_a_pod_are_mounted_and_updated(
    cx: &ScenarioContext,
) -> Result<()> {
    let cluster = TestCluster::start(cx).await?;
    cluster.apply(&config_map("hello")).await?;
    cluster.apply(&secret("hush")).await?;
    let from = json!({ "configMapKeyRef": { "name": "words", "key": "word" } });
    let main = image("main", images::BUSYBOX)
        .with("command", json!(["sh", "-c", SCRIPT]))
        .with("env", json!([{ "name": "WORD", "valueFrom": from }]))
        .mount("words", "/words")
        .mount("hidden", "/hidden");
    let reader = pod("reader")
        .with("terminationGracePeriodSeconds", 1)
        .add("volumes", json!({ "name": "words", "configMap": { "name": "words" } }))
        .add("volumes", json!({ "name": "hidden", "secret": { "secretName": "hidden" } }))
        .container(main);
    cluster.run(&reader).await?;
    let mut expected = vec!["word hello", "port 443", "parts of a token 3", "files hello hush"];
    wait_for_log(cx, &expected).await?;
    cluster.apply(&config_map("changed")).await?;
    expected.push("files changed hush");
    wait_for_log(cx, &expected).await?;
    cluster.apply(&secret("louder")).await?;
    expected.push("files changed louder");
    wait_for_log(cx, &expected).await
}

async fn wait_for_log(cx: &ScenarioContext, expected: &[&str]) -> Result<()> {
    let texts = async || {
        let pods = cx.inspector().pods().await?;
        match pods.iter().find_map(|pod| pod.container("main").ok()) {
            Some(main) => main.log_texts(),
            None => Ok(Vec::new()),
        }
    };
    let what = format!("it says {:?}", expected.last());
    eventually(MAX_WAIT, &what, texts, |texts| texts == expected).await.map(drop)
}

fn config_map(word: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "words" }, "data": { "word": word } })
}

fn secret(word: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "hidden" }, "stringData": { "word": word } })
}
