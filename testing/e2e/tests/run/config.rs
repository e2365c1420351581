//! ConfigMaps and Secrets beside a pod of `oarsman run`.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::run_process::RunProcess;
use oarsman_e2e::scenario::ScenarioContext;
use serde_json::{Value, json};

const MAX_WAIT: Duration = Duration::from_secs(60);

fn settings(data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings" }, "data": data })
}

fn login() -> Value {
    let data = json!({ "PASSWORD": "opensesame" });
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login" }, "stringData": data })
}

/// A pod that prints all values it finds, waits for the key `next` of its ConfigMap, and prints that, too.
fn reader() -> String {
    let script = [
        "env:COLOUR",
        "env:PASSWORD",
        "cat:/conf/COLOUR",
        "cat:/all/labels",
        "cat:/all/secret/word",
        // Without a newline the output is not shown.
        "out:",
        "wait-file:/conf/next",
        "cat:/conf/next",
        "forever",
    ];
    let sources = json!([
        { "downwardAPI": { "items": [{ "path": "labels", "fieldRef": { "fieldPath": "metadata.labels" } }] } },
        { "secret": { "name": "login", "items": [{ "key": "PASSWORD", "path": "secret/word", "mode": 256 }] } },
        { "configMap": { "name": "none", "optional": true } },
    ]);
    let main = script_container("main", &script)
        .with(
            "envFrom",
            json!([
                { "configMapRef": { "name": "settings" } },
                { "secretRef": { "name": "login" } },
                { "secretRef": { "name": "none", "optional": true } },
            ]),
        )
        .mount("conf", "/conf")
        .mount("all", "/all")
        .mount("none", "/none");
    pod("reader")
        .container(main)
        .with_metadata("labels", json!({ "app": "reader", "tier": "one" }))
        .add("volumes", json!({ "name": "conf", "configMap": { "name": "settings" } }))
        .add("volumes", json!({ "name": "all", "projected": { "sources": sources } }))
        .add(
            "volumes",
            json!({ "name": "none", "secret": { "secretName": "none", "optional": true } }),
        )
        .text()
}

pub(super) async fn an_edited_config_map_shows_in_the_container_that_runs(
    cx: &ScenarioContext,
) -> Result<()> {
    let place = cx.scratch().join("config");
    fs::create_dir_all(&place)?;
    let write = |data: &Value| fs::write(place.join("settings.json"), settings(data).to_string());
    write(&json!({ "COLOUR": "teal" }))?;
    fs::write(place.join("login.json"), login().to_string())?;
    fs::write(place.join("reader.json"), reader())?;
    let mut process = RunProcess::start(cx, &[&place], &[])?;
    for what in ["teal", "opensesame", "tealapp=\"reader\"", "tier=\"one\"opensesame"] {
        process.wait_for_output(what, MAX_WAIT).await?;
    }
    let before = cx.inspector().pod("reader").await?;
    write(&json!({ "COLOUR": "teal", "next": "seen while it ran\n" }))?;
    process.wait_for_output("seen while it ran", MAX_WAIT).await?;
    let after = cx.inspector().pod("reader").await?;
    let (before, after) = (before.container("main")?, after.container("main")?);
    ensure!(before.id == after.id && after.restarts == Some(0), "{before:?} {after:?}");
    process.interrupt()?;
    ensure!(process.wait_exit(MAX_WAIT).await? == 0, "{}", process.output()?);
    Ok(())
}
