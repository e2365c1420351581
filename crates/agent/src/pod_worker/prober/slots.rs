//! How many probes are under way at once.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Slots for probes. A pod has a few of its own, so that probes of one pod that hang take no more of the node's than that.
#[derive(Debug)]
pub(crate) struct ProbeSlots {
    connections: Semaphore,
    commands: Semaphore,
}

impl ProbeSlots {
    pub(crate) fn of_pod() -> Self {
        Self::new(8, 2)
    }

    /// Of the node. A command costs processes of the runtime, a connection costs a descriptor.
    pub(crate) fn of_node() -> Self {
        Self::new(512, 64)
    }

    fn new(connections: usize, commands: usize) -> Self {
        Self { connections: Semaphore::new(connections), commands: Semaphore::new(commands) }
    }

    /// Waits for a connection. Never closed, so there is always one.
    pub(super) async fn connection(&self) -> Option<SemaphorePermit<'_>> {
        self.connections.acquire().await.ok()
    }

    /// Waits for a command.
    pub(super) async fn command(&self) -> Option<SemaphorePermit<'_>> {
        self.commands.acquire().await.ok()
    }
}
