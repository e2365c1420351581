//! Lists the images on the node: after pulls, at a limited rate, and periodically because others pull and remove images too.

use std::sync::Arc;
use std::time::Duration;

use oarsman_core::node::images::node_images;
use tokio::time::{sleep, timeout};

use super::NodeStatusContext;

/// The shortest time between two lists.
const SPACING: Duration = Duration::from_secs(30);
/// The longest time between two lists.
const LASTS: Duration = Duration::from_secs(300);
/// The deadline of one list.
const DEADLINE: Duration = Duration::from_secs(60);

pub(super) async fn run(context: Arc<NodeStatusContext>) {
    let context = &*context;
    let mut pulled = context.node.pulled.subscribe();
    loop {
        pulled.mark_seen();
        if let Ok(answer) = timeout(DEADLINE, context.node.seams.runtime.list_images(None)).await {
            context.node.report_store.record_runtime_response(&answer);
            match answer {
                Ok(images) => set_images(
                    context,
                    node_images(images, context.node_status_config.profile.max_images),
                ),
                Err(error) => tracing::debug!(call = "ListImages", %error, "images not listed"),
            }
        }
        sleep(SPACING).await;
        // A pull, or the end of the wait: both mean that it is time.
        timeout(LASTS - SPACING, pulled.changed()).await.ok();
    }
}

fn set_images(
    context: &NodeStatusContext,
    images: Vec<k8s_openapi::api::core::v1::ContainerImage>,
) {
    context.images.send_if_modified(|known| {
        let is_news = known.as_ref() != Some(&images);
        *known = Some(images);
        is_news
    });
}
