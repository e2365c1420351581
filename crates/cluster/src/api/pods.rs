//! The pods bound to this node, all of them each time something changed.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::unfold;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::store::Store;
use super::watch::{Manner, Watch};
use crate::PodSets;

#[cfg(test)]
mod tests;

/// The pods bound to a node, whose newest copies go through the store. Nothing comes before the first whole list; many changes that
/// come together are told together.
pub(super) fn sets(pods: Api<Pod>, node: &str, store: Arc<Store>) -> PodSets {
    let fields = format!("spec.nodeName={node}");
    let watch = Watch::new(pods, fields, "the pods of this node".to_owned(), Manner::ALERT);
    unfold((watch, store), |(mut watch, store)| async {
        loop {
            let mut told = false;
            for news in watch.next().await {
                told |= store.hear(news);
            }
            if told {
                return Some((store.pods(), (watch, store)));
            }
        }
    })
    .boxed()
}
