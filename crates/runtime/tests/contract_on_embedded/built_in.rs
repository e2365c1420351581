//! Images that come with the program.

use std::sync::Arc;

use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use oarsman_clock::SystemClock;
use oarsman_cri::Runtime;
use oarsman_cri_types::v1::{ImageSpec, PullImageRequest};
use oarsman_runtime::{BuiltInImage, EmbeddedRuntime, EmbeddedRuntimeSettings};
use tokio::runtime::Handle;

use crate::harness::Node;
use crate::reconnect::trial;

pub(crate) fn trials(node: &Node, tokio: &Handle) -> Vec<Trial> {
    vec![trial(
        node,
        tokio,
        "built_in",
        "an_image_of_the_program_is_pulled_again_after_its_removal",
        pull,
    )]
}

async fn pull(node: Node, name: &'static str) -> Result<()> {
    let image =
        BuiltInImage { name: oarsman_demo_image::NAME, archive: oarsman_demo_image::archive };
    let settings = EmbeddedRuntimeSettings {
        built_in_images: vec![image],
        ..EmbeddedRuntimeSettings::new(node.path().join(name), std::env::current_exe()?)
    };
    let runtime = EmbeddedRuntime::open(settings, Arc::new(SystemClock::start())).await?;
    let spec = |name: &str| ImageSpec { image: name.to_owned(), ..ImageSpec::default() };
    let pull =
        |name: &str| PullImageRequest { image: Some(spec(name)), ..PullImageRequest::default() };
    ensure!(runtime.image_status(spec(image.name)).await?.is_none(), "nothing asked for it yet");
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(runtime.pull_image(pull(image.name)).await?);
        let found = runtime.image_status(spec(image.name)).await?;
        ensure!(found.is_some_and(|found| found.repo_tags == [image.name]));
        runtime.remove_image(spec(image.name)).await?;
        ensure!(runtime.image_status(spec(image.name)).await?.is_none(), "it was removed");
    }
    ensure!(ids[0] == ids[1], "the same program makes the same image: {ids:?}");
    let refused = runtime.pull_image(pull("127.0.0.1:1/web:1")).await.unwrap_err().to_string();
    ensure!(
        refused.contains("cannot pull 127.0.0.1:1/web:1: cannot reach http://127.0.0.1:1/"),
        "{refused}"
    );
    node.close_later(runtime);
    Ok(())
}
