//! The client of a CRI runtime behind a unix socket.

mod calls;
mod endpoint;
mod events;
mod info;
mod lists;
mod object_name;
mod pending_call;

use std::sync::Arc;

use tonic::transport::Channel;

pub use self::endpoint::{ConnectionHolder, InvalidEndpoint};
use crate::deadline::{DeadlineClass, Deadlines};
use crate::wire::LARGEST_MESSAGE;
use crate::wire::image_service_client::ImageServiceClient;
use crate::wire::runtime_service_client::RuntimeServiceClient;

/// A remote runtime.
///
/// It connects at the first call, and again by itself after the runtime was restarted; while the
/// runtime is away, calls fail with [`CriError::is_unavailable`](crate::CriError::is_unavailable).
/// Clones share the connection.
#[derive(Debug, Clone)]
pub struct RemoteRuntime {
    runtime: RuntimeServiceClient<Channel>,
    images: ImageServiceClient<Channel>,
    /// Events come over a connection of their own, which the connection holder does not hold: some runtimes send each event to one listener
    /// only, and a dead listener would go on taking them.
    events: RuntimeServiceClient<Channel>,
    deadlines: Deadlines,
}

impl RemoteRuntime {
    /// A client of the runtime at this endpoint, with images at the other, if that is given.
    /// Nothing is sent yet. Must be called within a tokio runtime.
    pub fn new(
        runtime_endpoint: &str,
        image_endpoint: Option<&str>,
        deadlines: Deadlines,
    ) -> Result<Self, InvalidEndpoint> {
        Self::with_holder(None, runtime_endpoint, image_endpoint, deadlines)
    }

    /// The same, with a holder of its connections.
    pub fn with_holder(
        holder: Option<Arc<dyn ConnectionHolder>>,
        runtime_endpoint: &str,
        image_endpoint: Option<&str>,
        deadlines: Deadlines,
    ) -> Result<Self, InvalidEndpoint> {
        let runtime = endpoint::channel(runtime_endpoint, holder.clone())?;
        let images = match image_endpoint {
            Some(other) => endpoint::channel(other, holder)?,
            None => runtime.clone(),
        };
        Ok(Self {
            runtime: RuntimeServiceClient::new(runtime).max_decoding_message_size(LARGEST_MESSAGE),
            events: RuntimeServiceClient::new(endpoint::channel(runtime_endpoint, None)?)
                .max_decoding_message_size(LARGEST_MESSAGE),
            images: ImageServiceClient::new(images).max_decoding_message_size(LARGEST_MESSAGE),
            deadlines,
        })
    }

    fn attempt<'a>(
        &self,
        call: &'static str,
        subject: &'a str,
        effort: DeadlineClass,
    ) -> pending_call::PendingCall<'a> {
        let (limit, slow_after) = (self.deadlines.limit(effort), effort.slow_after());
        pending_call::PendingCall { call, subject, limit, slow_after }
    }
}
