//! Lists the images on the node: after pulls, but not after each of many, and now and then because others pull and remove too.

use std::sync::Arc;
use std::time::Duration;

use oarsman_core::node::images::listed;
use tokio::time::{sleep, timeout};

use super::Office;

/// How often at most.
const SPACING: Duration = Duration::from_secs(30);
/// How long a list counts though nothing was pulled.
const LASTS: Duration = Duration::from_secs(300);
/// A runtime that takes longer is asked again.
const DEADLINE: Duration = Duration::from_secs(60);

pub(super) async fn follow(office: Arc<Office>) {
    let office = &*office;
    let mut pulled = office.node.pulled.subscribe();
    loop {
        pulled.mark_seen();
        if let Ok(answer) = timeout(DEADLINE, office.node.seams.runtime.list_images(None)).await {
            office.node.book.heard_runtime(&answer);
            match answer {
                Ok(images) => tell(office, listed(images, office.membership.profile.max_images)),
                Err(error) => tracing::debug!(call = "ListImages", %error, "images not listed"),
            }
        }
        sleep(SPACING).await;
        // A pull, or the end of the wait: both mean that it is time.
        timeout(LASTS - SPACING, pulled.changed()).await.ok();
    }
}

fn tell(office: &Office, images: Vec<k8s_openapi::api::core::v1::ContainerImage>) {
    office.images.send_if_modified(|known| {
        let is_news = known.as_ref() != Some(&images);
        *known = Some(images);
        is_news
    });
}
