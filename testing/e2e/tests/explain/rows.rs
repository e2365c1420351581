//! Causes that need nothing but a manifest: all of them are provoked at once, by one agent.

mod config;
mod crashes;
mod images;
mod order;
mod running;
mod sandbox;

use std::time::Duration;

use anyhow::Result;
use oarsman_core::explain::ExplanationCause;
use oarsman_e2e::manifest::{ContainerManifest, PodManifest, image, pod, script_container};
use oarsman_e2e::scenario::ScenarioContext;
use oarsman_rig::images::{
    BUSYBOX, ImageConfig, ImageLayer, OciImage, script_image as actor_image,
};
use oarsman_rig::{Registry, RegistryCredentials, RepositoryBehaviour};
use serde_json::{Value, json};

use super::ask::{ExpectedExplanation, expected, until_all};

/// A pod, and its expected explanation.
pub(super) struct CauseRow {
    name: &'static str,
    manifest: PodManifest,
    expected: ExpectedExplanation,
}

/// Where the rows run.
pub(super) struct RowContext {
    /// The registry of the images.
    registry: String,
    /// A directory that pods share with the test.
    scratch: String,
}

fn row(
    name: &'static str,
    manifest: PodManifest,
    cause: ExplanationCause,
    sentence: &str,
    next: &str,
) -> CauseRow {
    CauseRow { name, manifest, expected: expected(cause, sentence, next) }
}

/// A pod of one container.
fn of(name: &str, container: ContainerManifest) -> PodManifest {
    pod(name).container(container)
}

fn forever() -> ContainerManifest {
    script_container("main", &["forever"])
}

/// A probe that fails for a long time.
fn bad_probe() -> Value {
    let exec = json!({ "command": ["/script", "err:not yet", "exit:1"] });
    json!({ "exec": exec, "periodSeconds": 2, "timeoutSeconds": 10, "failureThreshold": 1000 })
}

/// A shell script in busybox.
fn shell(script: &str) -> ContainerManifest {
    image("main", BUSYBOX).with("command", json!(["sh", "-c", script]))
}

fn all(world: &RowContext) -> Vec<CauseRow> {
    let families =
        [running::rows, images::rows, crashes::rows, config::rows, sandbox::rows, order::rows];
    families.into_iter().flat_map(|rows| rows(world)).collect()
}

/// The causes that the rows provoke.
pub(super) fn causes() -> Vec<ExplanationCause> {
    let nowhere = RowContext { registry: String::new(), scratch: String::new() };
    all(&nowhere).iter().map(|row| row.expected.cause).collect()
}

/// A registry of images that are private, slow, broken, forbidden, and for another processor.
fn registry(cx: &ScenarioContext) -> Result<Registry> {
    let named = |name: &str| {
        let config = ImageConfig { env: vec![format!("NAME={name}")], ..ImageConfig::default() };
        actor_image(cx.rig().parts(), name, config)
    };
    let names = ["private:1", "slow:1", "broken:1", "forbidden:1"];
    let mut served: Vec<OciImage> = names.into_iter().map(named).collect::<Result<_>>()?;
    served.push(OciImage::build("empty:1", &[ImageLayer::default()], &ImageConfig::default())?);
    served.push(OciImage::foreign("foreign:1", "s390x")?);
    let registry = Registry::start(served)?;
    cx.rig().allow_registry(registry.address())?;
    let (username, password) = ("node".to_owned(), "secret".to_owned());
    let credentials = Some(RegistryCredentials { username, password });
    registry.set("private", RepositoryBehaviour { credentials, ..RepositoryBehaviour::default() });
    registry.set(
        "broken",
        RepositoryBehaviour { failure: Some(503), ..RepositoryBehaviour::default() },
    );
    registry.set(
        "forbidden",
        RepositoryBehaviour { failure: Some(403), ..RepositoryBehaviour::default() },
    );
    registry.set(
        "slow",
        RepositoryBehaviour { delay: Duration::from_secs(600), ..RepositoryBehaviour::default() },
    );
    Ok(registry)
}

pub(super) async fn every_row_of_the_table_is_explained(cx: &ScenarioContext) -> Result<()> {
    let user = ImageConfig { user: "stranger".to_owned(), ..ImageConfig::default() };
    let stranger = actor_image(cx.rig().parts(), images::STRANGER, user)?;
    cx.rig().import(&[stranger]).await?;
    let registry = registry(cx)?;
    let scratch = cx.scratch();
    crashes::prepare(&scratch)?;
    let world = RowContext {
        registry: registry.address().to_string(),
        scratch: scratch.display().to_string(),
    };
    let agent = cx.agent()?;
    let rows = all(&world);
    for row in &rows {
        agent.apply(row.name, &row.manifest.clone().with("terminationGracePeriodSeconds", 1))?;
    }
    let expected: Vec<_> = rows.iter().map(|row| (row.name, &row.expected)).collect();
    until_all(&agent, &expected).await
}
