//! The client of a CRI runtime behind a unix socket.

mod attempt;
mod calls;
mod endpoint;
mod events;
mod info;
mod subject;

use std::sync::Arc;

use tonic::transport::Channel;

pub use self::endpoint::{InvalidEndpoint, Keeper};
use crate::deadline::{Deadlines, Effort};
use crate::wire::LARGEST_MESSAGE;
use crate::wire::image_service_client::ImageServiceClient;
use crate::wire::runtime_service_client::RuntimeServiceClient;

/// A remote runtime.
///
/// It connects at the first call, and again by itself after the runtime was restarted; while the
/// runtime is away, calls fail with [`CriError::is_unavailable`](crate::CriError::is_unavailable).
/// Clones share the connection.
#[derive(Debug, Clone)]
pub struct Client {
    runtime: RuntimeServiceClient<Channel>,
    images: ImageServiceClient<Channel>,
    /// Events come over a connection of their own, which nobody keeps: some runtimes tell each event to one listener only, and a dead one
    /// would go on taking them.
    events: RuntimeServiceClient<Channel>,
    deadlines: Deadlines,
}

impl Client {
    /// A client of the runtime at this endpoint, with images at the other, if that is given.
    /// Nothing is sent yet. Must be called within a tokio runtime.
    pub fn new(
        runtime_endpoint: &str,
        image_endpoint: Option<&str>,
        deadlines: Deadlines,
    ) -> Result<Self, InvalidEndpoint> {
        Self::kept_by(None, runtime_endpoint, image_endpoint, deadlines)
    }

    /// The same, with somebody who keeps its connections.
    pub fn kept_by(
        keeper: Option<Arc<dyn Keeper>>,
        runtime_endpoint: &str,
        image_endpoint: Option<&str>,
        deadlines: Deadlines,
    ) -> Result<Self, InvalidEndpoint> {
        let runtime = endpoint::channel(runtime_endpoint, keeper.clone())?;
        let images = match image_endpoint {
            Some(other) => endpoint::channel(other, keeper)?,
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
        effort: Effort,
    ) -> attempt::Attempt<'a> {
        let (limit, usual) = (self.deadlines.limit(effort), effort.usual());
        attempt::Attempt { call, subject, limit, usual }
    }
}
