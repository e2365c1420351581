//! The trait by which the server has the node measured.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use oarsman_core::stats::{StatsScope, StatsSnapshot};

/// Measures the node, its pods and containers, when it is asked and only then.
#[async_trait]
pub trait StatsProvider: Send + Sync + 'static {
    /// What an endpoint shows. Requests that come within about a second get the same snapshot.
    ///
    /// # Errors
    /// When the machine cannot be read, or does not answer in time.
    async fn stats(&self, scope: StatsScope) -> Result<Arc<StatsSnapshot>, StatsError>;
}

/// The node could not be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsError(
    /// The reason, in words.
    pub String,
);

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the node cannot be measured: {}", self.0)
    }
}

impl std::error::Error for StatsError {}
