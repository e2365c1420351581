//! Relays between a client and a runtime that a test plays.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;
use crate::StreamingError;
use crate::channels::{
    ChannelEvent, ChannelProtocol, ChannelSocket, ERROR, RESIZE, STDERR, STDIN, STDOUT,
};
use crate::spdy::{SpdyDecoder, SpdyEncoder, SpdyFrame};
use crate::websocket::FrameMask;

const FAILURE: &str = r#"{"metadata":{},"status":"Failure","message":"command terminated with exit code 3","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;

fn data(channel: u8, bytes: &str) -> ChannelEvent {
    ChannelEvent::Data { channel, bytes: bytes.as_bytes().to_vec() }
}

/// A relay that runs, with the other ends of its connections.
struct Running {
    client: DuplexStream,
    socket: ChannelSocket,
    runtime: DuplexStream,
    decoder: SpdyDecoder,
    encoder: SpdyEncoder,
    relay: JoinHandle<RelayReport>,
}

impl Running {
    fn start(protocol: ChannelProtocol, relay: impl Relay + 'static) -> Self {
        let ((client, its), (runtime, other)) = (duplex(1 << 20), duplex(1 << 20));
        let mask = FrameMask::Random(Box::new(|| [9, 8, 7, 6]));
        Self {
            client,
            socket: ChannelSocket::client(protocol, mask),
            runtime,
            decoder: SpdyDecoder::default(),
            encoder: SpdyEncoder::default(),
            relay: tokio::spawn(run(its, other, Box::new(relay), Duration::from_secs(60))),
        }
    }

    async fn runtime_gets(&mut self, count: usize) -> Vec<SpdyFrame> {
        let mut frames = Vec::new();
        while frames.len() < count {
            let mut buffer = [0; 4096];
            let length = self.runtime.read(&mut buffer).await.unwrap();
            assert!(length > 0, "the relay ended after {frames:?}");
            frames.extend(self.decoder.feed(&buffer[..length]).unwrap());
        }
        frames
    }

    async fn runtime_sends(&mut self, frames: &[SpdyFrame]) {
        let mut wire = Vec::new();
        frames.iter().for_each(|frame| self.encoder.encode(frame, &mut wire));
        self.runtime.write_all(&wire).await.unwrap();
    }

    async fn accept(&mut self, streams: &[u32]) {
        let replies: Vec<_> = streams
            .iter()
            .map(|stream| SpdyFrame::SynReply { stream: *stream, fin: false, headers: vec![] })
            .collect();
        self.runtime_sends(&replies).await;
    }

    async fn client_sends(&mut self, channel: u8, text: &str) {
        let mut wire = Vec::new();
        self.socket.send(channel, text.as_bytes(), &mut wire);
        self.client.write_all(&wire).await.unwrap();
    }

    /// Everything until the relay closes the client's connection.
    async fn client_gets_all(&mut self) -> Vec<ChannelEvent> {
        let (mut bytes, mut replies) = (Vec::new(), Vec::new());
        self.client.read_to_end(&mut bytes).await.unwrap();
        self.socket.feed(&bytes, &mut replies).unwrap()
    }
}

fn stream_data(stream: u32, fin: bool, text: &str) -> SpdyFrame {
    SpdyFrame::Data { stream, fin, bytes: text.as_bytes().to_vec() }
}

fn kinds(frames: &[SpdyFrame]) -> Vec<(u32, String)> {
    let kind = |frame: &SpdyFrame| match frame {
        SpdyFrame::SynStream { stream, headers, .. } => (*stream, headers[0].1.clone()),
        other => panic!("{other:?}"),
    };
    frames.iter().map(kind).collect()
}

const ALL: RemoteCommandStreams =
    RemoteCommandStreams { stdin: true, stdout: true, stderr: true, tty: false };

#[tokio::test]
async fn a_command_gets_its_input_and_its_end_and_gives_output_and_status() {
    let relay = RemoteCommandRelay::new(ChannelProtocol::V5, ALL);
    let mut it = Running::start(ChannelProtocol::V5, relay);
    // Sent before the runtime has accepted: it waits.
    it.client_sends(STDIN, "typed").await;
    let opened = it.runtime_gets(4).await;
    let want = [(1, "error"), (3, "stdin"), (5, "stdout"), (7, "stderr")];
    assert_eq!(kinds(&opened), want.map(|(stream, kind)| (stream, kind.to_owned())));
    it.accept(&[1, 3, 5, 7]).await;
    assert_eq!(it.runtime_gets(1).await, [stream_data(3, false, "typed")]);
    let mut wire = Vec::new();
    it.socket.close_channel(STDIN, &mut wire);
    it.client.write_all(&wire).await.unwrap();
    assert_eq!(it.runtime_gets(1).await, [stream_data(3, true, "")]);
    it.runtime_sends(&[
        stream_data(5, false, "out"),
        stream_data(7, true, "err"),
        stream_data(5, true, ""),
        stream_data(1, true, FAILURE),
    ])
    .await;
    let want = [data(STDOUT, "out"), data(STDERR, "err"), data(ERROR, FAILURE), ChannelEvent::End];
    assert_eq!(it.client_gets_all().await, want);
    assert_eq!(it.relay.await.unwrap().outcome, Ok(()));
}

#[tokio::test]
async fn a_terminal_has_sizes_and_no_error_output() {
    let wanted = RemoteCommandStreams { stderr: false, tty: true, ..ALL };
    let relay = RemoteCommandRelay::new(ChannelProtocol::V4Base64, wanted);
    let mut it = Running::start(ChannelProtocol::V4Base64, relay);
    let opened = it.runtime_gets(4).await;
    assert_eq!(kinds(&opened)[3], (7, "resize".to_owned()));
    it.accept(&[1, 3, 5, 7]).await;
    it.client_sends(RESIZE, r#"{"Width":80,"Height":24}"#).await;
    assert_eq!(it.runtime_gets(1).await, [stream_data(7, false, r#"{"Width":80,"Height":24}"#)]);
    it.client_sends(STDERR, "not the client's").await;
    it.client_sends(STDIN, "x").await;
    assert_eq!(it.runtime_gets(1).await, [stream_data(3, false, "x")]);
    // The runtime closes the whole connection: what it sent before is passed on, and that its status is missing is a failure.
    it.runtime_sends(&[stream_data(5, false, "bye")]).await;
    it.runtime.shutdown().await.unwrap();
    let got = it.client_gets_all().await;
    assert_eq!((&got[0], &got[2]), (&data(STDOUT, "bye"), &ChannelEvent::End));
    let ChannelEvent::Data { channel: ERROR, bytes } = &got[1] else { panic!("{got:?}") };
    let status: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(status["status"], "Failure");
}

#[tokio::test]
async fn an_old_client_gets_the_message_of_a_failure_and_nothing_of_a_success() {
    let success = r#"{"metadata":{},"status":"Success"}"#;
    let failure = Some("command terminated with exit code 3");
    for (status, message) in [(FAILURE, failure), (success, None)] {
        let relay = RemoteCommandRelay::new(ChannelProtocol::V1, ALL);
        let mut it = Running::start(ChannelProtocol::V1, relay);
        it.runtime_gets(4).await;
        it.accept(&[1, 3, 5, 7]).await;
        let (first, second) = status.split_at(10);
        it.runtime_sends(&[
            stream_data(1, false, first),
            stream_data(1, true, second),
            stream_data(5, true, ""),
            SpdyFrame::RstStream { stream: 7, status: 5 },
        ])
        .await;
        let mut want: Vec<_> = message.map(|message| data(ERROR, message)).into_iter().collect();
        want.push(ChannelEvent::End);
        assert_eq!(it.client_gets_all().await, want);
    }
}

#[tokio::test]
async fn ports_have_two_channels_each() {
    let relay = PortForwardRelay::new(ChannelProtocol::V4, vec![80, 8080]).unwrap();
    let mut it = Running::start(ChannelProtocol::V4, relay);
    let opened = it.runtime_gets(4).await;
    let want = [(1, "error"), (3, "data"), (5, "error"), (7, "data")];
    assert_eq!(kinds(&opened), want.map(|(stream, kind)| (stream, kind.to_owned())));
    it.accept(&[1, 3, 5, 7]).await;
    it.client_sends(2, "to 8080").await;
    assert_eq!(it.runtime_gets(1).await, [stream_data(7, false, "to 8080")]);
    it.runtime_sends(&[
        stream_data(7, true, "answer"),
        stream_data(5, true, ""),
        stream_data(1, true, "no such port"),
        SpdyFrame::RstStream { stream: 3, status: 5 },
    ])
    .await;
    let ports = [(1, 80u16), (0, 80), (3, 8080), (2, 8080)];
    let told = ports
        .map(|(channel, port)| ChannelEvent::Data { channel, bytes: port.to_le_bytes().to_vec() });
    let want =
        [&told[..], &[data(2, "answer"), data(1, "no such port"), ChannelEvent::End]].concat();
    assert_eq!(it.client_gets_all().await, want);
    assert!(PortForwardRelay::new(ChannelProtocol::V4, vec![1; 128]).is_none());
}

#[tokio::test]
async fn everything_ends_when_the_client_goes_or_sends_garbage() {
    let relay = RemoteCommandRelay::new(ChannelProtocol::V5, ALL);
    let mut it = Running::start(ChannelProtocol::V5, relay);
    it.runtime_gets(4).await;
    it.accept(&[1, 3, 5, 7]).await;
    it.client.write_all(b"\xff\xff").await.unwrap();
    let mut rest = Vec::new();
    it.runtime.read_to_end(&mut rest).await.unwrap();
    let outcome = it.relay.await.unwrap().outcome;
    assert!(matches!(outcome, Err(StreamingError::WebSocket(_))), "{outcome:?}");
    let ((client, its), (mut runtime, other)) = (duplex(64), duplex(64));
    let relay = tokio::spawn(run(its, other, Box::new(ByteRelay), Duration::ZERO));
    drop(client);
    assert_eq!(runtime.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(relay.await.unwrap().outcome, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_and_one_that_is_not_accepted_are_closed() {
    let ((_client, its), (_runtime, other)) = (duplex(64), duplex(64));
    let report = run(its, other, Box::new(ByteRelay), Duration::from_secs(5)).await;
    assert_eq!(report.outcome, Err(StreamingError::Idle));
    let ((_client, its), (_runtime, other)) = (duplex(1 << 16), duplex(1 << 16));
    let relay = RemoteCommandRelay::new(ChannelProtocol::V5, ALL);
    let report = run(its, other, Box::new(relay), Duration::ZERO).await;
    assert_eq!(report.outcome, Err(StreamingError::NotAccepted));
}

#[tokio::test]
async fn a_side_that_takes_nothing_holds_bounded_buffers() {
    let ((_client, its), (mut runtime, other)) = (duplex(1024), duplex(1024));
    let relay = tokio::spawn(run(its, other, Box::new(ByteRelay), Duration::ZERO));
    let flood = async {
        for sent in 0u64.. {
            runtime.write_all(&[7; 1024]).await.unwrap();
            assert!(sent < 100, "nothing stops the runtime");
        }
    };
    assert!(tokio::time::timeout(Duration::from_millis(300), flood).await.is_err());
    relay.abort();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_is_noticed_while_the_runtime_takes_nothing() {
    let relay = RemoteCommandRelay::new(ChannelProtocol::V5, ALL);
    let mut it = Running::start(ChannelProtocol::V5, relay);
    it.runtime_gets(4).await;
    it.accept(&[1, 3, 5, 7]).await;
    // More than the connection to the runtime holds.
    for _ in 0..48 {
        it.client_sends(STDIN, &"x".repeat(32 * 1024)).await;
    }
    drop(it.client);
    let report = tokio::time::timeout(Duration::from_secs(50), it.relay).await.unwrap().unwrap();
    assert!(
        matches!(report.outcome, Err(StreamingError::Io { side: "client", .. })),
        "{:?}",
        report.outcome
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_there_goes_on_once_the_runtime_takes_its_input() {
    let ((mut client, its), (mut runtime, other)) = (duplex(1 << 16), duplex(1024));
    let relay = tokio::spawn(run(its, other, Box::new(TunnelRelay::default()), Duration::ZERO));
    let sent = [7; 4096];
    // Masked with zeros.
    client.write_all(b"\x82\xfe\x10\x00\x00\x00\x00\x00").await.unwrap();
    client.write_all(&sent).await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let mut got = vec![0; sent.len()];
    runtime.read_exact(&mut got).await.unwrap();
    assert_eq!(got, sent);
    let mut pings = [0; 4];
    client.read_exact(&mut pings).await.unwrap();
    assert_eq!(&pings, b"\x89\x00\x89\x00");
    relay.abort();
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways() {
    let ((mut client, its), (mut runtime, other)) = (duplex(1 << 16), duplex(1 << 16));
    let relay = tokio::spawn(run(its, other, Box::new(TunnelRelay::default()), Duration::ZERO));
    // Masked with zeros: one message in two fragments, and a ping between them.
    let wire = b"\x02\x83\x00\x00\x00\x00abc\x89\x81\x00\x00\x00\x00p\x80\x82\x00\x00\x00\x00de";
    client.write_all(wire).await.unwrap();
    let mut got = [0; 5];
    runtime.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"abcde");
    runtime.write_all(b"xyz").await.unwrap();
    let mut got = [0; 8];
    client.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"\x8a\x01p\x82\x03xyz");
    client.write_all(b"\x88\x80\x00\x00\x00\x00").await.unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"\x88\x02\x03\xe8");
    assert_eq!(relay.await.unwrap().outcome, Ok(()));
}

#[tokio::test]
async fn a_forwarded_connection_that_is_half_closed_gets_its_answer() {
    let (relay, failure) = ForwardRelay::new(80);
    let mut it = Running::start(ChannelProtocol::V4, relay);
    it.client.write_all(b"question").await.unwrap();
    it.client.shutdown().await.unwrap();
    let opened = it.runtime_gets(2).await;
    assert_eq!(kinds(&opened), [(1, "error".to_owned()), (3, "data".to_owned())]);
    it.accept(&[1, 3]).await;
    let want = [stream_data(3, false, "question"), stream_data(3, true, "")];
    assert_eq!(it.runtime_gets(2).await, want);
    it.runtime_sends(&[stream_data(3, true, "answer"), stream_data(1, true, "and an error")]).await;
    let mut answer = String::new();
    it.client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "answer");
    assert_eq!(it.relay.await.unwrap().outcome, Ok(()));
    assert_eq!(failure.get().map(String::as_str), Some("and an error"));
}
