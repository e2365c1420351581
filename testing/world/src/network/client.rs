//! The network as an agent reaches it: every request over its life's line.

use std::sync::Arc;

use async_trait::async_trait;
use oarsman_agent::seams::{HttpAnswer, HttpGet, Network, NetworkError};

use super::FakeNetwork;
use crate::line::{Breakage, Call, Conduct, Line, LineError};

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

impl LineError for NetworkError {
    fn broken(_: &'static str, subject: &str, how: Breakage) -> Self {
        let url = subject.to_owned();
        match how {
            Breakage::Unavailable => Self::Unreachable { url, why: "no route to host".to_owned() },
            Breakage::Unknown | Breakage::Refused | Breakage::Busy(_) => {
                Self::Unreachable { url, why: "connection reset".to_owned() }
            }
            Breakage::TimedOut(limit) => Self::TimedOut { url, limit },
        }
    }

    fn kind(&self) -> String {
        match self {
            Self::Unreachable { why, .. } => why.clone(),
            Self::TimedOut { .. } => "timed out".to_owned(),
            Self::Tls { .. } => "TLS".to_owned(),
            Self::PlainHttp { .. } => "plain HTTP".to_owned(),
            Self::BodyTooLarge { .. } => "body too large".to_owned(),
            Self::Malformed { .. } => "malformed".to_owned(),
        }
    }
}
