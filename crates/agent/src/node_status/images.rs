//! Lists the images on the node: after pulls, at a limited rate, and periodically because others pull and remove images too.

use std::sync::Arc;
use std::time::Duration;

use oarsman_core::node::images::listed;
use tokio::time::{sleep, timeout};

use super::Office;

/// The shortest time between two lists.
const SPACING: Duration = Duration::from_secs(30);
/// The longest time between two lists.
const LASTS: Duration = Duration::from_secs(300);
/// The deadline of one list.
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
