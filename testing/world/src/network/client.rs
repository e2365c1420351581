//! The network for an agent: every request goes over the link of its incarnation.

use std::sync::Arc;

use async_trait::async_trait;
use oarsman_net::{
    GrpcCheck, GrpcResponse, HttpGet, HttpResponse, Network, NetworkError, TcpConnect,
};

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

    async fn connect(&self, request: &TcpConnect) -> Result<(), NetworkError> {
        let call = LinkCall::new("connect", request.url(), AbandonPolicy::Read);
        let (network, request) = (self.network.clone(), request.clone());
        let call = call.within(request.timeout);
        self.link.call(call, async move { network.take_connection(request).await }).await
    }

    async fn check_health(&self, request: &GrpcCheck) -> Result<GrpcResponse, NetworkError> {
        let call = LinkCall::new("check_health", request.url(), AbandonPolicy::Read);
        let (network, request) = (self.network.clone(), request.clone());
        let call = call.within(request.timeout);
        self.link.call(call, async move { network.tell_health(request).await }).await
    }
}
