//! The network as an agent reaches it: every request over its life's line.

use std::sync::Arc;

use async_trait::async_trait;
use oarsman_net::{HttpGet, HttpResponse, Network, NetworkError};

use super::FakeNetwork;
use crate::link::{AbandonPolicy, Link, LinkCall};

/// The servers at the other end of a line.
pub fn connect(network: FakeNetwork, link: Link) -> Arc<dyn Network> {
    Arc::new(LinkedNetwork { network, link })
}

struct LinkedNetwork {
    network: FakeNetwork,
    link: Link,
}

#[async_trait]
impl Network for LinkedNetwork {
    async fn get(&self, request: &HttpGet) -> Result<HttpResponse, NetworkError> {
        let call = LinkCall::new("get", request.url(), AbandonPolicy::Read).within(request.timeout);
        let (network, request) = (self.network.clone(), request.clone());
        self.link.call(call, async move { network.answer(request).await }).await
    }
}
