//! Health checks against a real server on this machine, and against servers that speak something else.

use std::convert::Infallible;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::codegen::http;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::*;
use crate::{Network, SystemNetwork};

/// A server that ends with its test.
struct TestServer {
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers by the name of the service that is asked for.
#[derive(Clone)]
struct Health;

impl tonic::server::UnaryService<HealthCheckRequest> for Health {
    type Response = HealthCheckResponse;
    type Future = std::future::Ready<Result<tonic::Response<HealthCheckResponse>, Status>>;

    fn call(&mut self, request: Request<HealthCheckRequest>) -> Self::Future {
        let agent = request.metadata().get("user-agent").and_then(|agent| agent.to_str().ok());
        let is_probe = agent.is_some_and(|agent| agent.starts_with("kube-probe/1.36"));
        std::future::ready(match request.into_inner().service.as_str() {
            "" if is_probe => Ok(tonic::Response::new(HealthCheckResponse { status: 1 })),
            "down" => Ok(tonic::Response::new(HealthCheckResponse { status: 2 })),
            _ => Err(Status::not_found("unknown service")),
        })
    }
}

impl tonic::server::NamedService for Health {
    const NAME: &'static str = "grpc.health.v1.Health";
}

impl tower::Service<http::Request<tonic::body::Body>> for Health {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(async move {
            if request.uri().path() != METHOD {
                return Ok(Status::unimplemented("no such method").into_http());
            }
            let codec = ProstCodec::<HealthCheckResponse, HealthCheckRequest>::default();
            Ok(tonic::server::Grpc::new(codec).unary(Self, request).await)
        })
    }
}

async fn serve() -> TestServer {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = incoming.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        Server::builder().add_service(Health).serve_with_incoming(incoming).await.unwrap();
    });
    TestServer { port, task }
}

fn request(port: u16, service: &str) -> GrpcCheck {
    GrpcCheck {
        host: "127.0.0.1".to_owned(),
        port,
        service: service.to_owned(),
        user_agent: "kube-probe/1.36".to_owned(),
        timeout: Duration::from_secs(20),
    }
}

#[tokio::test]
async fn a_server_is_asked_for_a_service_or_for_itself() {
    let server = serve().await;
    let asked = async |service| SystemNetwork.check_health(&request(server.port, service)).await;
    assert_eq!(asked("").await.unwrap(), GrpcResponse::Status(1));
    assert_eq!(asked("down").await.unwrap(), GrpcResponse::Status(2));
    let unknown = asked("other").await.unwrap();
    let GrpcResponse::Error { is_unimplemented: false, message } = unknown else {
        panic!("{unknown:?}")
    };
    assert!(message.starts_with("unknown service"), "{message}");
}

#[tokio::test]
async fn no_server_and_one_that_speaks_something_else_are_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = SystemNetwork.check_health(&request(port, "")).await.unwrap_err();
    assert!(matches!(error, NetworkError::Unreachable { .. }), "{error}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let nonsense = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            socket.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.ok();
        }
    });
    let answer = SystemNetwork.check_health(&request(port, "")).await;
    assert!(!matches!(answer, Ok(GrpcResponse::Status(_))), "{answer:?}");
    nonsense.abort();
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = GrpcCheck { timeout: Duration::from_millis(50), ..request(port, "") };
    let error = SystemNetwork.check_health(&asked).await.unwrap_err();
    assert!(matches!(error, NetworkError::TimedOut { .. }), "{error}");
    drop(listener);
}
