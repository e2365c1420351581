//! How calls fail.

use std::sync::Arc;
use std::time::Duration;

use oarsman_cri::{Client, Code, CriError, Runtime};
use oarsman_cri_types::v1 as cri;
use tonic::body::Body;
use tonic::codegen::http::Response;
use tonic::codegen::http::uri::PathAndQuery;
use tonic_prost::ProstCodec;

use crate::harness::Place;
use crate::recorder::{Mode, Recorder};
use crate::script;

const ABOVE_THE_BOUND: usize = 16 * 1024 * 1024 + 1;

fn failing(code: Code) -> (Place, Client) {
    let place = Place::new();
    let _served = place.serve(Arc::new(Recorder::new(Mode::Fail(code))));
    let client = place.client();
    (place, client)
}

#[tokio::test]
async fn the_code_and_the_words_of_a_failure_arrive() {
    for code in [Code::Unknown, Code::AlreadyExists, Code::Unimplemented] {
        let (_place, client) = failing(code);
        let error = client.start_container("c1").await.unwrap_err();
        assert_eq!(error.code(), code);
        assert_eq!(error.message(), "as told");
        assert_eq!(error.call(), "StartContainer");
        assert_eq!(error.subject(), Some("c1"));
    }
}

#[tokio::test]
async fn what_has_no_id_yet_is_named_by_its_pod_or_image() {
    let (_place, client) = failing(Code::Internal);
    let subject_of = |error: CriError| error.subject().unwrap_or("").to_owned();

    let error = client.run_pod_sandbox(script::run_sandbox()).await.unwrap_err();
    assert_eq!(subject_of(error), "default/web");
    let error = client.create_container(script::create_container()).await.unwrap_err();
    assert_eq!(subject_of(error), "default/web/main");
    let error = client.pull_image(script::pull("a:1")).await.unwrap_err();
    assert_eq!(subject_of(error), "a:1");
}

#[tokio::test]
async fn stopping_or_removing_what_is_gone_succeeds() {
    let (_place, client) = failing(Code::NotFound);
    client.stop_pod_sandbox("s1").await.unwrap();
    client.remove_pod_sandbox("s1").await.unwrap();
    client.stop_container("c1", Duration::ZERO).await.unwrap();
    client.remove_container("c1").await.unwrap();
    client.remove_image(script::image("a:1")).await.unwrap();

    assert!(client.container_status("c1").await.unwrap_err().is_gone());
    assert!(client.start_container("c1").await.unwrap_err().is_gone());
}

#[tokio::test]
async fn stopping_or_removing_can_fail_for_other_reasons() {
    let (_place, client) = failing(Code::Internal);
    assert_eq!(client.remove_container("c1").await.unwrap_err().code(), Code::Internal);
    assert_eq!(client.stop_pod_sandbox("s1").await.unwrap_err().code(), Code::Internal);
}

#[tokio::test]
async fn a_call_that_the_trait_lacks_is_unimplemented() {
    let place = Place::new();
    let _served = place.serve(Arc::new(Recorder::new(Mode::Answer)));
    let endpoint = tonic::transport::Endpoint::from_shared(place.endpoint()).unwrap();
    let mut raw = tonic::client::Grpc::new(endpoint.connect().await.unwrap());
    raw.ready().await.unwrap();
    let path = PathAndQuery::from_static("/runtime.v1.RuntimeService/StreamContainers");
    let codec =
        ProstCodec::<cri::StreamContainersRequest, cri::StreamContainersResponse>::default();
    let request = tonic::Request::new(cri::StreamContainersRequest::default());
    let status = raw.server_streaming(request, path, codec).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unimplemented);
}

#[tokio::test]
async fn a_request_above_the_bound_is_an_error_of_its_call() {
    let recorder = Arc::new(Recorder::new(Mode::Answer));
    let place = Place::new();
    let _served = place.serve(recorder.clone());
    let mut request = script::exec_sync(1);
    request.cmd.push("x".repeat(ABOVE_THE_BOUND));

    let error = place.client().exec_sync(request).await.unwrap_err();
    assert_eq!(error.call(), "ExecSync");
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    assert_eq!(recorder.log(), Vec::<String>::new());
}

#[tokio::test]
async fn an_answer_above_the_bound_is_an_error_of_its_call() {
    let place = Place::new();
    place.serve_raw(|_| async {
        // The head of a gRPC message: not compressed, 16 MiB and a byte long.
        grpc_answer("\0\u{1}\0\0\u{1}")
    });
    let error = place.client().list_containers(None).await.unwrap_err();
    assert_eq!(error.call(), "ListContainers");
    assert!(error.message().contains("message length too large"), "{error}");
}

fn grpc_answer(frame: &str) -> Response<Body> {
    let answer = Response::builder().header("content-type", "application/grpc");
    answer.body(Body::new(frame.to_owned())).unwrap()
}
