//! Volumes whose content others use: an image as a volume, and variables in a file of an emptyDir.

use anyhow::{Result, ensure};
use oarsman_e2e::inspect::eventually;
use oarsman_e2e::manifest::{pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images;
use serde_json::json;

use super::starts::MAX_WAIT;

pub(super) async fn a_container_has_variables_of_a_file_and_an_image_as_a_volume(
    cx: &ScenarioContext,
) -> Result<()> {
    let agent = cx.agent()?;
    let first = script_container("first", &["write:/shared/env=COLOUR='deep blue'"]);
    let file = json!({ "volumeName": "shared", "path": "env", "key": "COLOUR" });
    let mounts = json!([
        { "name": "tools", "mountPath": "/tools" },
        { "name": "tools", "mountPath": "/users", "subPath": "etc" },
    ]);
    let main = script_container(
        "main",
        &["env:COLOUR", "cat:/users/passwd", "cat:/tools/etc/group", "forever"],
    )
    .with("env", json!([{ "name": "COLOUR", "valueFrom": { "fileKeyRef": file } }]))
    .with("volumeMounts", mounts);
    let image = json!({ "reference": images::SCRIPT, "pullPolicy": "IfNotPresent" });
    let manifest = pod("web")
        .with("terminationGracePeriodSeconds", 1)
        .add("volumes", json!({ "name": "shared", "emptyDir": {} }))
        .add("volumes", json!({ "name": "tools", "image": image }))
        .init(first.mount("shared", "/shared"))
        .container(main);
    agent.apply("web", &manifest)?;
    let texts = async || {
        let seen = cx.inspector().pod("web").await?;
        Ok(seen.container("main").and_then(|main| main.log_texts()).unwrap_or_default())
    };
    let texts = eventually(MAX_WAIT, "it has printed", texts, |texts| texts.len() > 2).await?;
    ensure!(texts.first().is_some_and(|line| line == "deep blue"), "{texts:?}");
    ensure!(texts.iter().filter(|line| line.starts_with("root:")).count() == 2, "{texts:?}");
    Ok(())
}
