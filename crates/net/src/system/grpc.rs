//! The health protocol of gRPC, `grpc.health.v1`: one call over a connection of its own, without TLS.

use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::with_causes;
use crate::{GrpcCheck, GrpcResponse, NetworkError};

const METHOD: &str = "/grpc.health.v1.Health/Check";
/// The most bytes of an answer, which is one number.
const LONGEST_ANSWER: usize = 4096;
const LONGEST_HEADERS: u32 = 16 * 1024;

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// Connects, asks, and closes the connection.
pub(super) async fn check(request: &GrpcCheck) -> Result<GrpcResponse, NetworkError> {
    let channel = connect(request).await?;
    let mut client = Grpc::new(channel).max_decoding_message_size(LONGEST_ANSWER);
    let unreachable =
        |error| NetworkError::Unreachable { url: request.url(), why: with_causes(&error) };
    client.ready().await.map_err(unreachable)?;
    let message = Request::new(HealthCheckRequest { service: request.service.clone() });
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    let answer = client.unary(message, PathAndQuery::from_static(METHOD), codec).await;
    Ok(match answer {
        Ok(answer) => GrpcResponse::Status(answer.into_inner().status),
        Err(status) => refusal(&status),
    })
}

async fn connect(request: &GrpcCheck) -> Result<Channel, NetworkError> {
    let malformed =
        |error| NetworkError::Malformed { url: request.url(), why: with_causes(&error) };
    let endpoint = Endpoint::from_shared(format!("http://{}", request.authority()));
    let endpoint = endpoint.map_err(malformed)?.http2_max_header_list_size(LONGEST_HEADERS);
    let endpoint = endpoint.user_agent(request.user_agent.as_str()).map_err(malformed)?;
    endpoint
        .connect()
        .await
        .map_err(|error| NetworkError::Unreachable { url: request.url(), why: with_causes(&error) })
}

fn refusal(status: &Status) -> GrpcResponse {
    GrpcResponse::Error {
        is_unimplemented: status.code() == Code::Unimplemented,
        message: format!("{} ({})", status.message(), status.code()),
    }
}

#[cfg(test)]
mod tests;
