//! Causes that need nothing but a manifest: all of them are played at once, by one agent.

mod config;
mod crashes;
mod images;
mod order;
mod running;
mod sandbox;

use std::time::Duration;

use anyhow::Result;
use oarsman_core::explain::Cause;
use oarsman_e2e::manifest::{Container, Manifest, actor, image, pod};
use oarsman_e2e::scenario::Stage;
use oarsman_rig::images::{BUSYBOX, Config, Image, Layer, actor as actor_image};
use oarsman_rig::{Behaviour, Credentials, Registry};
use serde_json::json;

use super::ask::{Expected, expected, until_all};

/// A pod, and what should be said about it.
pub(super) struct Row {
    name: &'static str,
    manifest: Manifest,
    expected: Expected,
}

/// What rows need to know of where they are played.
pub(super) struct World {
    /// Where images can be pulled from.
    registry: String,
    /// A directory that pods share with the test.
    scratch: String,
}

fn row(name: &'static str, manifest: Manifest, cause: Cause, sentence: &str, next: &str) -> Row {
    Row { name, manifest, expected: expected(cause, sentence, next) }
}

/// A pod of one container.
fn of(name: &str, container: Container) -> Manifest {
    pod(name).container(container)
}

fn forever() -> Container {
    actor("main", &["forever"])
}

/// A shell script in busybox.
fn shell(script: &str) -> Container {
    image("main", BUSYBOX).with("command", json!(["sh", "-c", script]))
}

fn all(world: &World) -> Vec<Row> {
    let families =
        [running::rows, images::rows, crashes::rows, config::rows, sandbox::rows, order::rows];
    families.into_iter().flat_map(|rows| rows(world)).collect()
}

/// What the rows provoke.
pub(super) fn causes() -> Vec<Cause> {
    let nowhere = World { registry: String::new(), scratch: String::new() };
    all(&nowhere).iter().map(|row| row.expected.cause).collect()
}

/// A registry of images that are private, slow, broken, forbidden, and for another processor.
fn registry(stage: &Stage) -> Result<Registry> {
    let named = |name: &str| {
        let config = Config { env: vec![format!("NAME={name}")], ..Config::default() };
        actor_image(stage.rig().parts(), name, config)
    };
    let names = ["private:1", "slow:1", "broken:1", "forbidden:1"];
    let mut served: Vec<Image> = names.into_iter().map(named).collect::<Result<_>>()?;
    served.push(Image::build("empty:1", &[Layer::default()], &Config::default())?);
    served.push(Image::foreign("foreign:1", "s390x")?);
    let registry = Registry::start(served)?;
    stage.rig().allow_registry(registry.address())?;
    let (username, password) = ("node".to_owned(), "secret".to_owned());
    let credentials = Some(Credentials { username, password });
    registry.set("private", Behaviour { credentials, ..Behaviour::default() });
    registry.set("broken", Behaviour { failure: Some(503), ..Behaviour::default() });
    registry.set("forbidden", Behaviour { failure: Some(403), ..Behaviour::default() });
    registry.set("slow", Behaviour { delay: Duration::from_secs(600), ..Behaviour::default() });
    Ok(registry)
}

pub(super) async fn every_row_of_the_table_is_explained(stage: &Stage) -> Result<()> {
    let user = Config { user: "stranger".to_owned(), ..Config::default() };
    let stranger = actor_image(stage.rig().parts(), images::STRANGER, user)?;
    stage.rig().import(&[stranger]).await?;
    let registry = registry(stage)?;
    let scratch = stage.scratch();
    crashes::prepare(&scratch)?;
    let world =
        World { registry: registry.address().to_string(), scratch: scratch.display().to_string() };
    let agent = stage.agent()?;
    let rows = all(&world);
    for row in &rows {
        agent.apply(row.name, &row.manifest.clone().with("terminationGracePeriodSeconds", 1))?;
    }
    let expected: Vec<_> = rows.iter().map(|row| (row.name, &row.expected)).collect();
    until_all(&agent, &expected).await
}
