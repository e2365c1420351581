//! Cases on images: status, pull, list, removal.

use anyhow::{Context, Result};
use oarsman_cri_types::v1::{AuthConfig, ImageFilter, PullImageRequest};

use super::cases;
use crate::context::{assert_gone, image};
use crate::{CaseContext, ContractCase};

pub(super) fn all() -> Vec<ContractCase> {
    cases![
        an_image_that_is_there_is_described,
        an_image_has_the_user_it_runs_as,
        an_image_that_is_not_on_the_node_has_no_status,
        images_are_listed_and_a_filter_hides_none_that_it_names,
        an_image_is_pulled_again_and_removed,
        an_image_in_no_registry_cannot_be_pulled,
        a_private_image_wants_its_credentials,
        the_space_of_images_is_reported,
    ]
}

async fn pull(
    cx: &CaseContext,
    name: &str,
    auth: Option<AuthConfig>,
) -> oarsman_cri::Result<String> {
    let request = PullImageRequest { image: Some(image(name)), auth, ..Default::default() };
    cx.runtime().pull_image(request).await
}

async fn an_image_that_is_there_is_described(cx: &CaseContext) -> Result<()> {
    let name = &cx.harness().images().script;
    let found = cx.runtime().image_status(image(name)).await?.context("it is on the node")?;
    assert!(found.repo_tags.contains(name), "{found:?}");
    assert!(found.size > 0 && !found.id.is_empty(), "{found:?}");
    let by_id = cx.runtime().image_status(image(&found.id)).await?;
    assert_eq!(by_id.map(|image| image.id), Some(found.id));
    Ok(())
}

async fn an_image_has_the_user_it_runs_as(cx: &CaseContext) -> Result<()> {
    let images = cx.harness().images();
    let user = cx.runtime().image_status(image(&images.script_as_user)).await?;
    assert_eq!(user.and_then(|image| image.uid).map(|uid| uid.value), Some(1000));
    let root = cx.runtime().image_status(image(&images.script)).await?;
    assert_eq!(root.and_then(|image| image.uid), None);
    Ok(())
}

async fn an_image_that_is_not_on_the_node_has_no_status(cx: &CaseContext) -> Result<()> {
    let missing = image(&cx.harness().images().missing);
    assert_eq!(cx.runtime().image_status(missing).await?, None);
    Ok(())
}

/// containerd ignores the filter, so the agent cannot rely on more than this.
async fn images_are_listed_and_a_filter_hides_none_that_it_names(cx: &CaseContext) -> Result<()> {
    let images = cx.harness().images();
    let filter = ImageFilter { image: Some(image(&images.script)) };
    for filter in [None, Some(filter)] {
        let listed = cx.runtime().list_images(filter).await?;
        let found = listed.iter().any(|image| image.repo_tags.contains(&images.script));
        assert!(found, "{listed:?}");
    }
    Ok(())
}

async fn an_image_is_pulled_again_and_removed(cx: &CaseContext) -> Result<()> {
    let name = &cx.harness().images().pullable;
    let runtime = cx.runtime();
    let first = pull(cx, name, None).await?;
    let found = runtime.image_status(image(name)).await?.context("it was pulled")?;
    assert_eq!(pull(cx, name, None).await?, first, "pulled again");
    assert!(runtime.image_status(image(&first)).await?.is_some(), "found by what pull returned");
    for _ in 0..2 {
        runtime.remove_image(image(&found.id)).await?;
    }
    assert_eq!(runtime.image_status(image(name)).await?, None);
    Ok(())
}

async fn an_image_in_no_registry_cannot_be_pulled(cx: &CaseContext) -> Result<()> {
    let missing = pull(cx, &cx.harness().images().missing, None).await;
    assert_gone(&missing);
    Ok(())
}

async fn a_private_image_wants_its_credentials(cx: &CaseContext) -> Result<()> {
    let private = &cx.harness().images().private;
    assert!(pull(cx, &private.image, None).await.is_err(), "without any");
    let wrong = AuthConfig { password: "wrong".to_owned(), ..private.credentials.clone() };
    assert!(pull(cx, &private.image, Some(wrong)).await.is_err(), "with wrong ones");
    pull(cx, &private.image, Some(private.credentials.clone())).await?;
    cx.runtime().remove_image(image(&private.image)).await?;
    Ok(())
}

async fn the_space_of_images_is_reported(cx: &CaseContext) -> Result<()> {
    let info = cx.runtime().image_fs_info().await?;
    let space = info.image_filesystems.first().context("a file system")?;
    assert!(!space.fs_id.clone().unwrap_or_default().mountpoint.is_empty(), "{space:?}");
    Ok(())
}
