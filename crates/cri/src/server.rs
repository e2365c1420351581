//! The server of any Runtime: CRI v1 over a unix socket.

mod image_service;
mod runtime_service;
mod streamed_lists;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::{Response, Status};

use crate::wire::LARGEST_MESSAGE;
use crate::wire::image_service_server::ImageServiceServer;
use crate::wire::runtime_service_server::RuntimeServiceServer;
use crate::{InfoTarget, Result, Runtime};

/// How long calls under way may go on after the shutdown began.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// The listener failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve the runtime on its socket: {source}")]
pub struct ServeError {
    #[from]
    source: tonic::transport::Error,
}

/// Serves the runtime until `shutdown` completes. Then event streams end at once, and other calls
/// have a few seconds to finish before they are dropped.
pub async fn serve(
    runtime: Arc<dyn Runtime>,
    listener: UnixListener,
    shutdown: impl Future<Output = ()> + Send,
) -> std::result::Result<(), ServeError> {
    let adapter = RuntimeServer::new(runtime);
    let closing = adapter.closing.clone();
    let closed = adapter.closed.clone();
    // Also when this future is dropped: no call outlives it.
    let _end_all = (closing.clone().drop_guard(), closed.clone().drop_guard());
    let serving = Server::builder()
        .add_service(adapter.clone().runtime_service())
        .add_service(adapter.image_service())
        .serve_with_incoming_shutdown(
            UnixListenerStream::new(listener),
            closing.clone().cancelled_owned(),
        );
    let closing_down = async {
        shutdown.await;
        closing.cancel();
        tokio::time::sleep(DRAIN_TIME).await;
        closed.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        served = serving => Ok(served?),
        () = closing_down => Ok(()),
    }
}

/// A runtime behind the traits of the generated services.
#[derive(Clone)]
struct RuntimeServer {
    runtime: Arc<dyn Runtime>,
    /// Cancelled when event streams are to end.
    closing: CancellationToken,
    /// Cancelled when all other calls are to end.
    closed: CancellationToken,
}

impl RuntimeServer {
    fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self { runtime, closing: CancellationToken::new(), closed: CancellationToken::new() }
    }

    fn runtime_service(self) -> RuntimeServiceServer<Self> {
        RuntimeServiceServer::new(self)
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(LARGEST_MESSAGE)
    }

    fn image_service(self) -> ImageServiceServer<Self> {
        ImageServiceServer::new(self)
            .max_decoding_message_size(LARGEST_MESSAGE)
            .max_encoding_message_size(LARGEST_MESSAGE)
    }

    /// The details, if the request is verbose.
    async fn info_if(
        &self,
        asked: bool,
        about: InfoTarget<'_>,
    ) -> Result<BTreeMap<String, String>> {
        if asked { self.runtime.info(about).await } else { Ok(BTreeMap::new()) }
    }

    /// Waits for the answer of the runtime, but not beyond the end of the server.
    async fn answer<A>(
        &self,
        call: impl Future<Output = Result<A>>,
    ) -> std::result::Result<Response<A>, Status> {
        tokio::select! {
            answer = call => answer.map(Response::new).map_err(|error| error.to_status()),
            () = self.closed.cancelled() => Err(shutting_down()),
        }
    }
}

fn shutting_down() -> Status {
    Status::unavailable("the runtime is shutting down")
}

/// Implements a generated service. Each function takes the bare message, may use `?` on what the
/// runtime says, and ends in the bare answer; the macro adds what gRPC wants around them. Those after `streams` end in a list and
/// the function that makes a message of a part of it. What follows the functions goes into the implementation as it is.
macro_rules! implement {
    ($service:ident {
        $(fn $rpc:ident($this:ident, $request:ident: $message:ty) -> $answer:ty { $($body:tt)* })*
    } streams {
        $(fn $list:ident($list_this:ident, $list_request:ident: $list_message:ty) -> $part:ty {
            $($list_body:tt)*
        })*
    } $($as_it_is:tt)*) => {
        #[tonic::async_trait]
        impl $service for $crate::server::RuntimeServer {
            $(async fn $rpc(
                &$this,
                $request: tonic::Request<$message>,
            ) -> std::result::Result<tonic::Response<$answer>, tonic::Status> {
                let $request = $request.into_inner();
                $this.answer(async { Ok({ $($body)* }) }).await
            })*
            $(async fn $list(
                &$list_this,
                $list_request: tonic::Request<$list_message>,
            ) -> std::result::Result<tonic::Response<tonic::codegen::BoxStream<$part>>, tonic::Status>
            {
                let $list_request = $list_request.into_inner();
                $list_this.answer(async {
                    let (list, message) = { $($list_body)* };
                    Ok($crate::server::streamed_lists::in_pieces(list, message))
                }).await
            })*
            $($as_it_is)*
        }
    };
}
use implement;
