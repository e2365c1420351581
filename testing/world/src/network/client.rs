//! The network as an agent reaches it: every request over its life's line.

use std::sync::Arc;

use async_trait::async_trait;
use oarsman_net::{HttpAnswer, HttpGet, Network, NetworkError};

use super::FakeNetwork;
use crate::line::{Call, Conduct, Line};

/// The servers at the other end of a line.
pub fn connect(network: FakeNetwork, line: Line) -> Arc<dyn Network> {
    Arc::new(Connection { network, line })
}

struct Connection {
    network: FakeNetwork,
    line: Line,
}

#[async_trait]
impl Network for Connection {
    async fn get(&self, request: &HttpGet) -> Result<HttpAnswer, NetworkError> {
        let call = Call::new("get", request.url(), Conduct::Read).within(request.timeout);
        let (network, request) = (self.network.clone(), request.clone());
        self.line.call(call, async move { network.answer(request).await }).await
    }
}
