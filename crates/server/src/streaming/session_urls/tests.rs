//! Clients of both protocols at URLs.

use oarsman_cri::CriError;
use oarsman_streaming::command_client::{self, CommandStreams};
use oarsman_streaming::connect::{self, ConnectError};
use oarsman_streaming::relay::{self, ForwardRelay};
use oarsman_streaming::runtime_end::{
    CommandConnection, CommandOutcome, ServedCommand, serve_ports,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;

const COMMAND: SessionPurpose =
    SessionPurpose::Command { stdin: true, stdout: true, stderr: false, tty: false };

struct Served {
    urls: Arc<SessionUrls>,
    end: CancellationToken,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start() -> Self {
        let (urls, end) = (SessionUrls::bind().await.unwrap(), CancellationToken::new());
        let serving = tokio::spawn(Arc::clone(&urls).serve(end.clone()));
        Self { urls, end, serving }
    }

    /// The URL of a session, as a client of the CRI socket gets it.
    async fn url(&self, name: &'static str, session: StreamingSession) -> String {
        let call = Call { name, object: "container".to_owned() };
        let found = async { Ok::<_, CriError>(StreamingEndpoint::Session(session)) };
        match GiveUrls(Arc::clone(&self.urls)).around(call, found).await.unwrap() {
            StreamingEndpoint::Url(url) => url,
            StreamingEndpoint::Session(session) => panic!("{session:?}"),
        }
    }

    async fn stop(self) {
        self.end.cancel();
        self.serving.await.unwrap();
    }
}

/// A command that gives back what it reads, and ends with the code 4.
fn echo() -> StreamingSession {
    StreamingSession::new(COMMAND, |stream| async move {
        let wanted = RemoteCommandStreams { stdin: true, stdout: true, stderr: false, tty: false };
        let connection = CommandConnection::accept(stream, wanted).await.unwrap();
        let (mut process, ours) = duplex(1024);
        let (stdout, stdin) = tokio::io::split(ours);
        let ended = async move {
            let mut text = String::new();
            process.read_to_string(&mut text).await.unwrap();
            process.write_all(text.as_bytes()).await.unwrap();
            CommandOutcome::of_exit(4)
        };
        let command = ServedCommand {
            stdin: Some(Box::new(stdin)),
            stdout: Some(Box::new(stdout)),
            stderr: None,
            ended,
            resize: |_| std::future::ready(()),
            ends_with_stdin: false,
            without_output: None,
        };
        connection.serve(command).await;
    })
}

fn refusal(answer: Result<connect::UpgradedStream, ConnectError>) -> (u16, String) {
    match answer.unwrap_err() {
        ConnectError::Refused { status, message, .. } => (status, message),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_command_is_reached_by_websocket_once() {
    let served = Served::start().await;
    let url = served.url("Exec", echo()).await;
    let (host, target) = connect::parse_url(&url).unwrap();
    let token = target.strip_prefix("/exec/").unwrap();
    assert!(host.starts_with("127.0.0.1:") && token.len() == 2 * TOKEN_BYTES, "{url}");
    let ask = async || {
        let stream = TcpStream::connect(&host).await.unwrap();
        connect::upgrade(stream, &host, command_client::request(target.clone())).await
    };
    let mut said = Vec::new();
    let streams = CommandStreams {
        stdin: Some(&b"typed"[..]),
        stdout: &mut said,
        stderr: tokio::io::sink(),
        sizes: None,
    };
    let code = command_client::run(ask().await.unwrap().stream, streams).await.unwrap();
    assert_eq!((code, said.as_slice()), (4, b"typed".as_slice()));
    let (status, message) = refusal(ask().await);
    assert_eq!(
        (status, message.as_str()),
        (404, "this URL was used before, or its minute is over")
    );
    served.stop().await;
}

#[tokio::test]
async fn a_port_is_reached_by_spdy() {
    let served = Served::start().await;
    let purpose = SessionPurpose::PortForward { ports: vec![80] };
    let session = StreamingSession::new(purpose, |stream| {
        serve_ports(stream, |port| async move {
            let (mut pod, ours) = duplex(1024);
            pod.write_all(format!("port {port}").as_bytes()).await.map_err(|it| it.to_string())?;
            Ok(ours)
        })
    });
    let url = served.url("PortForward", session).await;
    let runtime = connect::spdy_to_url(&url, &["portforward.k8s.io"]).await.unwrap();
    assert_eq!(runtime.stream_protocol.as_deref(), Some("portforward.k8s.io"));
    let (mut client, ours) = duplex(1024);
    let (forward, _) = ForwardRelay::new(80);
    let relayed = tokio::spawn(relay::run(ours, runtime.stream, Box::new(forward), Duration::ZERO));
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "port 80");
    relayed.await.unwrap().outcome.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn a_client_of_another_subprotocol_is_refused_before_anything_begins() {
    let served = Served::start().await;
    for (offered, status) in [(&["v1.channel.k8s.io"][..], 403), (&[], 403)] {
        let session = StreamingSession::new(COMMAND, |_| std::future::ready(()));
        let url = served.url("Exec", session.clone()).await;
        let (found, message) = refusal(connect::spdy_to_url(&url, offered).await);
        assert_eq!(found, status);
        assert!(message.contains("server accepts [v4.channel.k8s.io]"), "{message}");
        assert!(session.open().is_some(), "nothing has opened it");
    }
    served.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_url_is_good_for_a_minute_and_not_too_many_wait() {
    let urls = SessionUrls::bind().await.unwrap();
    let call = Call { name: "Attach", object: "container".to_owned() };
    let token = || urls.url(&call, &echo()).unwrap().rsplit('/').next().unwrap().to_owned();
    let (first, second) = (token(), token());
    assert_ne!(first, second);
    tokio::time::advance(LONGEST_WAIT - Duration::from_secs(1)).await;
    assert!(urls.take(&first).is_some());
    assert!(urls.take(&first).is_none());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(urls.take(&second).is_none());
    for _ in 0..MAX_WAITING {
        token();
    }
    assert_eq!(urls.url(&call, &echo()), Err(CallFault::Busy(LONGEST_WAIT)));
    tokio::time::advance(LONGEST_WAIT).await;
    token();
}
