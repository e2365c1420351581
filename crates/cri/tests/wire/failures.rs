//! The errors of failed calls.

use std::sync::Arc;
use std::time::Duration;

use oarsman_cri::{CriError, ErrorCode, RemoteRuntime, Runtime};
use oarsman_cri_types::v1 as cri;
use tonic::body::Body;
use tonic::codegen::http::Response;
use tonic::codegen::http::uri::PathAndQuery;
use tonic_prost::ProstCodec;

use crate::calls;
use crate::harness::SocketFixture;
use crate::recording_runtime::{RecorderMode, RecordingRuntime};

const ABOVE_THE_BOUND: usize = 16 * 1024 * 1024 + 1;

fn failing_runtime(code: ErrorCode) -> (SocketFixture, RemoteRuntime) {
    let fixture = SocketFixture::new();
    let _served = fixture.serve(Arc::new(RecordingRuntime::new(RecorderMode::Fail(code))));
    let client = fixture.client();
    (fixture, client)
}

#[tokio::test]
async fn the_code_and_the_message_of_a_failure_arrive() {
    for code in [ErrorCode::Unknown, ErrorCode::AlreadyExists, ErrorCode::Unimplemented] {
        let (_place, client) = failing_runtime(code);
        let error = client.start_container("c1").await.unwrap_err();
        assert_eq!(error.code(), code);
        assert_eq!(error.message(), "as told");
        assert_eq!(error.call(), "StartContainer");
        assert_eq!(error.subject(), Some("c1"));
    }
}

#[tokio::test]
async fn what_has_no_id_yet_is_named_by_its_pod_or_image() {
    let (_place, client) = failing_runtime(ErrorCode::Internal);
    let subject_of = |error: CriError| error.subject().unwrap_or("").to_owned();

    let error = client.run_pod_sandbox(calls::run_sandbox()).await.unwrap_err();
    assert_eq!(subject_of(error), "default/web");
    let error = client.create_container(calls::create_container()).await.unwrap_err();
    assert_eq!(subject_of(error), "default/web/main");
    let error = client.pull_image(calls::pull("a:1")).await.unwrap_err();
    assert_eq!(subject_of(error), "a:1");
}

#[tokio::test]
async fn stopping_or_removing_what_is_gone_succeeds() {
    let (_place, client) = failing_runtime(ErrorCode::NotFound);
    client.stop_pod_sandbox("s1").await.unwrap();
    client.remove_pod_sandbox("s1").await.unwrap();
    client.stop_container("c1", Duration::ZERO).await.unwrap();
    client.remove_container("c1").await.unwrap();
    client.remove_image(calls::image("a:1")).await.unwrap();

    assert!(client.container_status("c1").await.unwrap_err().is_gone());
    assert!(client.start_container("c1").await.unwrap_err().is_gone());
}

#[tokio::test]
async fn stopping_or_removing_can_fail_for_other_reasons() {
    let (_place, client) = failing_runtime(ErrorCode::Internal);
    assert_eq!(client.remove_container("c1").await.unwrap_err().code(), ErrorCode::Internal);
    assert_eq!(client.stop_pod_sandbox("s1").await.unwrap_err().code(), ErrorCode::Internal);
}

#[tokio::test]
async fn a_call_that_we_do_not_know_is_unimplemented() {
    let fixture = SocketFixture::new();
    let _served = fixture.serve(Arc::new(RecordingRuntime::new(RecorderMode::Answer)));
    let endpoint = tonic::transport::Endpoint::from_shared(fixture.endpoint()).unwrap();
    let mut raw = tonic::client::Grpc::new(endpoint.connect().await.unwrap());
    raw.ready().await.unwrap();
    let path = PathAndQuery::from_static("/runtime.v1.RuntimeService/CallOfANewerVersion");
    let codec =
        ProstCodec::<cri::StreamContainersRequest, cri::StreamContainersResponse>::default();
    let request = tonic::Request::new(cri::StreamContainersRequest::default());
    let status = raw.server_streaming(request, path, codec).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
}

#[tokio::test]
async fn a_request_above_the_bound_is_an_error_of_its_call() {
    let recorder = Arc::new(RecordingRuntime::new(RecorderMode::Answer));
    let fixture = SocketFixture::new();
    let _served = fixture.serve(recorder.clone());
    let mut request = calls::exec_sync(1);
    request.cmd.push("x".repeat(ABOVE_THE_BOUND));

    let error = fixture.client().exec_sync(request).await.unwrap_err();
    assert_eq!(error.call(), "ExecSync");
    assert_eq!(error.code(), ErrorCode::ResourceExhausted, "{error}");
    assert_eq!(recorder.log(), Vec::<String>::new());
}

#[tokio::test]
async fn an_answer_above_the_bound_is_an_error_of_its_call() {
    let fixture = SocketFixture::new();
    fixture.serve_raw(|_| async {
        // The head of a gRPC message: not compressed, 16 MiB and a byte long.
        grpc_answer("\0\u{1}\0\0\u{1}")
    });
    // A part of a list: all of it would be asked for in parts then.
    let part = Some(cri::ContainerFilter::default());
    let error = fixture.client().list_containers(part).await.unwrap_err();
    assert_eq!(error.call(), "ListContainers");
    assert!(error.message().contains("message length too large"), "{error}");
}

fn grpc_answer(frame: &str) -> Response<Body> {
    let answer = Response::builder().header("content-type", "application/grpc");
    answer.body(Body::new(frame.to_owned())).unwrap()
}
