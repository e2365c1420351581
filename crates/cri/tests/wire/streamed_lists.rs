//! Lists that come in pieces: no answer is larger than a message may be, and nothing is missing.

use std::sync::Arc;

use futures::TryStreamExt;
use oarsman_cri_types::v1 as cri;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use crate::harness::SocketFixture;
use crate::recording_runtime::{RecorderMode, RecordingRuntime};

/// Asks a server as clients do that are not ours.
async fn ask<Q, A>(fixture: &SocketFixture, path: &'static str, question: Q) -> Vec<A>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let endpoint = Endpoint::try_from(fixture.endpoint()).unwrap();
    let mut client = Grpc::new(endpoint.connect().await.unwrap());
    client.ready().await.unwrap();
    let (path, codec) = (PathAndQuery::from_static(path), ProstCodec::default());
    let answers = client.server_streaming(tonic::Request::new(question), path, codec).await;
    answers.unwrap().into_inner().try_collect().await.unwrap()
}

#[tokio::test]
async fn lists_larger_than_a_message_come_whole_in_pieces() {
    let fixture = SocketFixture::new();
    let _served = fixture.serve(Arc::new(RecordingRuntime::new(RecorderMode::AnswerLarge)));
    let question = cri::StreamPodSandboxesRequest { filter: None };
    let path = "/runtime.v1.RuntimeService/StreamPodSandboxes";
    let pieces: Vec<cri::StreamPodSandboxesResponse> = ask(&fixture, path, question).await;
    let mut ids: Vec<String> =
        pieces.iter().flat_map(|piece| &piece.pod_sandboxes).map(|it| it.id.clone()).collect();
    assert!(pieces.len() > 10, "{} pieces", pieces.len());
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), count), (80, 80));
    let question = cri::StreamContainersRequest { filter: None };
    let path = "/runtime.v1.RuntimeService/StreamContainers";
    let pieces: Vec<cri::StreamContainersResponse> = ask(&fixture, path, question).await;
    assert_eq!(pieces.iter().map(|piece| piece.containers.len()).sum::<usize>(), 80);
}
