//! The network for an agent: every request goes over the link of its incarnation.

use std::sync::Arc;

use async_trait::async_trait;
use oarsman_net::{HttpGet, HttpResponse, Network, NetworkError};

use super::FakeNetwork;
use crate::link::{AbandonPolicy, Link, LinkCall};

/// The servers over a link.
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
