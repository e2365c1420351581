//! A client that a test plays, frame by frame.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::command_client::TerminalSize;
use crate::relay::RemoteCommandStreams;
use crate::spdy::{SpdyDecoder, SpdyEncoder, SpdyFrame};

const ALL: RemoteCommandStreams =
    RemoteCommandStreams { stdin: true, stdout: true, stderr: true, tty: false };
const ERROR: u32 = 1;
const STDIN: u32 = 3;
const STDOUT: u32 = 5;
const STDERR: u32 = 7;

/// The client's end.
struct Peer {
    stream: DuplexStream,
    encoder: SpdyEncoder,
    decoder: SpdyDecoder,
}

impl Peer {
    fn new(stream: DuplexStream) -> Self {
        Self { stream, encoder: SpdyEncoder::default(), decoder: SpdyDecoder::default() }
    }

    async fn send(&mut self, frame: &SpdyFrame) {
        let mut wire = Vec::new();
        self.encoder.encode(frame, &mut wire);
        self.stream.write_all(&wire).await.unwrap();
    }

    async fn open(&mut self, stream: u32, headers: &[(&str, &str)]) {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let headers = headers.collect();
        self.send(&SpdyFrame::SynStream { stream, fin: false, headers }).await;
    }

    async fn open_all(&mut self, kinds: &[&str]) {
        for (stream, kind) in (1..).step_by(2).zip(kinds) {
            self.open(stream, &[("streamtype", kind)]).await;
        }
    }

    async fn data(&mut self, stream: u32, text: &str) {
        self.send(&SpdyFrame::Data { stream, fin: false, bytes: text.into() }).await;
    }

    async fn end(&mut self, stream: u32) {
        self.send(&SpdyFrame::Data { stream, fin: true, bytes: Vec::new() }).await;
    }

    /// What comes until the connection ends, without the replies to streams.
    async fn rest(&mut self) -> Vec<SpdyFrame> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).await.unwrap();
        let frames = self.decoder.feed(&bytes).unwrap();
        frames.into_iter().filter(|it| !matches!(it, SpdyFrame::SynReply { .. })).collect()
    }

    /// The next of these.
    async fn next(&mut self) -> SpdyFrame {
        loop {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).await.unwrap();
            let frames = self.decoder.feed(&byte).unwrap();
            // The decoder gives data byte by byte then.
            if let Some(frame) =
                frames.into_iter().find(|it| !matches!(it, SpdyFrame::SynReply { .. }))
            {
                return frame;
            }
        }
    }
}

/// All bytes of a stream, and whether it was ended.
fn of(frames: &[SpdyFrame], wanted: u32) -> (String, bool) {
    let mut all = (String::new(), false);
    for frame in frames {
        if let SpdyFrame::Data { stream, fin, bytes } = frame
            && *stream == wanted
        {
            assert!(!all.1, "data after the end of stream {wanted}");
            all.0.push_str(&String::from_utf8_lossy(bytes));
            all.1 |= fin;
        }
    }
    all
}

/// The process's ends of a command that is served.
struct Process {
    peer: Peer,
    stdin: DuplexStream,
    stdout: DuplexStream,
    stderr: DuplexStream,
    end: oneshot::Sender<CommandOutcome>,
    sizes: Arc<Mutex<Vec<TerminalSize>>>,
    served: JoinHandle<()>,
}

#[derive(Clone, Copy, Default)]
struct Rules {
    ends_with_stdin: bool,
    without_output: Option<&'static str>,
    stdin_bytes: usize,
}

fn serve(wanted: RemoteCommandStreams, rules: Rules) -> Process {
    let (client, runtime) = duplex(1 << 20);
    let (stdin, read) = duplex(rules.stdin_bytes.max(1024));
    let ((stdout, out), (stderr, err)) = (duplex(1024), duplex(1024));
    let (end, ended) = oneshot::channel();
    let sizes = Arc::<Mutex<Vec<TerminalSize>>>::default();
    let seen = Arc::clone(&sizes);
    let served = tokio::spawn(async move {
        let Some(connection) = CommandConnection::accept(runtime, wanted).await else { return };
        let command = ServedCommand {
            stdin: Some(Box::new(stdin)),
            stdout: Some(Box::new(stdout)),
            stderr: Some(Box::new(stderr)),
            ended: async { ended.await.unwrap_or(CommandOutcome::Failed("lost".into())) },
            resize: |size| {
                seen.lock().unwrap().push(size);
                std::future::ready(())
            },
            ends_with_stdin: rules.ends_with_stdin,
            without_output: rules.without_output,
        };
        connection.serve(command).await;
    });
    Process { peer: Peer::new(client), stdin: read, stdout: out, stderr: err, end, sizes, served }
}

#[tokio::test]
async fn a_command_reads_what_the_client_sends_and_its_status_follows_all_output() {
    let mut it = serve(ALL, Rules::default());
    // Some clients do not wait until all of their streams are there.
    it.peer.open_all(&["error", "stdin"]).await;
    it.peer.data(STDIN, "early ").await;
    it.peer.open(STDOUT, &[("streamtype", "stdout")]).await;
    it.peer.open(STDERR, &[("streamtype", "stderr")]).await;
    it.peer.data(STDIN, "and late").await;
    it.peer.end(STDIN).await;
    it.peer.send(&SpdyFrame::Ping(1)).await;
    let mut typed = String::new();
    it.stdin.read_to_string(&mut typed).await.unwrap();
    assert_eq!(typed, "early and late");
    it.stderr.write_all(b"bad").await.unwrap();
    it.end.send(CommandOutcome::of_exit(3)).unwrap();
    it.stdout.write_all(b"good").await.unwrap();
    drop((it.stdout, it.stderr));
    let frames = it.peer.rest().await;
    assert_eq!(of(&frames, STDOUT), ("good".to_owned(), true));
    assert_eq!(of(&frames, STDERR), ("bad".to_owned(), true));
    assert!(frames.contains(&SpdyFrame::Ping(1)));
    let (status, is_ended) = of(&frames, ERROR);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["details"]["causes"][0]["message"], "3");
    assert!(is_ended);
    let last =
        frames.iter().rposition(|it| matches!(it, SpdyFrame::Data { stream: STDOUT | STDERR, .. }));
    let first = frames.iter().position(|it| matches!(it, SpdyFrame::Data { stream: ERROR, .. }));
    assert!(last < first, "{frames:?}");
}

#[tokio::test]
async fn a_terminal_gets_sizes_while_its_process_reads_nothing() {
    let wanted = RemoteCommandStreams { stderr: false, tty: true, ..ALL };
    let mut it = serve(wanted, Rules::default());
    it.peer.open_all(&["error", "stdin", "stdout", "resize"]).await;
    it.peer.data(STDIN, &"x".repeat(4096)).await;
    it.peer.data(7, "no size").await;
    it.peer.data(7, r#"{"Width":80,"Height":24}"#).await;
    let resized = async {
        while it.sizes.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), resized).await.unwrap();
    assert_eq!(*it.sizes.lock().unwrap(), [TerminalSize { columns: 80, rows: 24 }]);
}

#[tokio::test(start_paused = true)]
async fn output_that_something_holds_open_is_read_until_it_is_silent() {
    let mut it = serve(ALL, Rules::default());
    it.peer.open_all(&["error", "stdin", "stdout", "stderr"]).await;
    it.end.send(CommandOutcome::Success).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    it.stdout.write_all(b"left behind").await.unwrap();
    let frames = timeout(Duration::from_secs(10), it.peer.rest()).await.unwrap();
    assert_eq!(of(&frames, STDOUT), ("left behind".to_owned(), true));
    assert!(of(&frames, ERROR).0.contains("Success"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_client_gets_all_output_of_a_command_that_has_ended() {
    // As much as the replies to its streams take.
    let (client, runtime) = duplex(256);
    let (stdout, mut out) = duplex(8192);
    out.write_all(&[b'x'; 8192]).await.unwrap();
    drop(out);
    let wanted = RemoteCommandStreams { stdout: true, ..RemoteCommandStreams::default() };
    tokio::spawn(async move {
        let connection = CommandConnection::accept(runtime, wanted).await.unwrap();
        let command = ServedCommand {
            stdin: None,
            stdout: Some(Box::new(stdout)),
            stderr: None,
            ended: std::future::ready(CommandOutcome::Success),
            resize: |_| std::future::ready(()),
            ends_with_stdin: false,
            without_output: None,
        };
        connection.serve(command).await;
    });
    let mut peer = Peer::new(client);
    peer.open_all(&["error", "stdout"]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let frames = peer.rest().await;
    assert_eq!(of(&frames, 3).0.len(), 8192);
    assert!(of(&frames, ERROR).0.contains("Success"));
}

#[tokio::test(start_paused = true)]
async fn an_attached_client_ends_with_its_input_or_when_it_was_detached() {
    let mut it = serve(ALL, Rules { ends_with_stdin: true, ..Rules::default() });
    it.peer.open_all(&["error", "stdin", "stdout", "stderr"]).await;
    it.peer.data(STDIN, "typed").await;
    it.peer.end(STDIN).await;
    assert!(of(&it.peer.rest().await, ERROR).0.contains("Success"));
    let mut typed = String::new();
    it.stdin.read_to_string(&mut typed).await.unwrap();
    assert_eq!(typed, "typed");

    let mut it = serve(ALL, Rules { without_output: Some("detached"), ..Rules::default() });
    it.peer.open_all(&["error", "stdin", "stdout", "stderr"]).await;
    drop((it.stdout, it.stderr));
    let status = of(&it.peer.rest().await, ERROR).0;
    assert!(status.contains("Internal error occurred: detached"), "{status}");
}

#[tokio::test]
async fn a_client_that_goes_ends_the_service_also_while_its_input_waits() {
    let mut it = serve(ALL, Rules::default());
    it.peer.open_all(&["error", "stdin", "stdout", "stderr"]).await;
    it.peer.data(STDIN, &"x".repeat(4096)).await;
    drop(it.peer);
    timeout(Duration::from_secs(20), it.served).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_opens_no_streams_or_sends_garbage_is_let_go() {
    let (client, runtime) = duplex(1024);
    assert!(CommandConnection::accept(runtime, ALL).await.is_none());
    drop(client);
    let (mut client, runtime) = duplex(1024);
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(CommandConnection::accept(runtime, ALL).await.is_none());
    let (client, runtime) = duplex(1 << 16);
    let mut peer = Peer::new(client);
    peer.open_all(&["error", "stdin"]).await;
    for _ in 0..100 {
        peer.data(STDIN, "early").await;
    }
    assert!(CommandConnection::accept(runtime, ALL).await.is_none());
}

#[tokio::test]
async fn a_command_that_cannot_be_begun_is_told() {
    let (client, runtime) = duplex(1 << 16);
    let mut peer = Peer::new(client);
    peer.open_all(&["error", "stdin", "stdout", "stderr"]).await;
    let connection = CommandConnection::accept(runtime, ALL).await.unwrap();
    connection.fail("no such program".to_owned()).await;
    let frames = peer.rest().await;
    let status: serde_json::Value = serde_json::from_str(&of(&frames, ERROR).0).unwrap();
    assert_eq!(status["message"], "Internal error occurred: no such program");
    assert_eq!((&status["reason"], &status["code"]), (&"InternalError".into(), &500.into()));
    assert_eq!(of(&frames, STDOUT), (String::new(), true));
}

/// Ports whose connections a test takes.
fn ports(bytes: usize) -> (Peer, mpsc::UnboundedReceiver<(u16, DuplexStream)>) {
    let (client, runtime) = duplex(1 << 20);
    let (taken, connections) = mpsc::unbounded_channel();
    tokio::spawn(serve_ports(runtime, move |port| {
        let taken = taken.clone();
        async move {
            if port == 9 {
                return Err("connection refused".to_owned());
            }
            let (pod, ours) = duplex(bytes);
            taken.send((port, pod)).map_err(|error| error.to_string())?;
            Ok(ours)
        }
    }));
    (Peer::new(client), connections)
}

async fn open_port(peer: &mut Peer, kind: &str, stream: u32, port: &str, request: &str) {
    let headers = [("streamtype", kind), ("port", port), ("requestid", request)];
    peer.open(stream, &headers).await;
}

#[tokio::test]
async fn a_port_is_answered_after_the_client_has_sent_all() -> io::Result<()> {
    let (mut peer, mut connections) = ports(1024);
    // In either order, and data before the pair is complete.
    open_port(&mut peer, "data", 1, "80", "0").await;
    peer.data(1, "question").await;
    peer.end(1).await;
    open_port(&mut peer, "error", 3, "80", "0").await;
    let (port, mut pod) = connections.recv().await.unwrap();
    let mut asked = String::new();
    pod.read_to_string(&mut asked).await?;
    assert_eq!((port, asked.as_str()), (80, "question"));
    pod.write_all(b"answer").await?;
    drop(pod);
    let mut frames = Vec::new();
    while !of(&frames, 1).1 {
        frames.push(peer.next().await);
    }
    assert_eq!(of(&frames, 1).0, "answer");
    assert_eq!(of(&frames, 3), (String::new(), true));
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_ports_answer_is_told_although_the_client_has_not_ended() {
    let (mut peer, mut connections) = ports(1024);
    open_port(&mut peer, "error", 1, "80", "0").await;
    open_port(&mut peer, "data", 3, "80", "0").await;
    drop(connections.recv().await.unwrap());
    assert_eq!(peer.next().await, SpdyFrame::Data { stream: 1, fin: true, bytes: Vec::new() });
    assert_eq!(peer.next().await, SpdyFrame::Data { stream: 3, fin: true, bytes: Vec::new() });
}

#[tokio::test]
async fn a_refused_port_and_a_stream_of_nothing_are_told() {
    let (mut peer, _connections) = ports(1024);
    open_port(&mut peer, "error", 1, "9", "0").await;
    open_port(&mut peer, "data", 3, "9", "0").await;
    let mut frames = Vec::new();
    while !of(&frames, 3).1 {
        frames.push(peer.next().await);
    }
    assert_eq!(of(&frames, 1), ("connection refused".to_owned(), true));
    for (stream, kind, port) in [(5, "data", "0"), (7, "data", "x"), (9, "other", "80")] {
        open_port(&mut peer, kind, stream, port, "1").await;
        assert_eq!(peer.next().await, SpdyFrame::RstStream { stream, status: 3 });
    }
}

#[tokio::test]
async fn many_connections_are_apart_and_end_with_the_client() {
    let (mut peer, mut connections) = ports(64 << 10);
    let mut pods = Vec::new();
    for request in 0..100 {
        let id = request.to_string();
        open_port(&mut peer, "error", request * 4 + 1, "80", &id).await;
        open_port(&mut peer, "data", request * 4 + 3, "80", &id).await;
        peer.data(request * 4 + 3, &id).await;
        pods.push(connections.recv().await.unwrap().1);
    }
    for (request, pod) in pods.iter_mut().enumerate() {
        let mut buffer = [0; 8];
        let length = pod.read(&mut buffer).await.unwrap();
        assert_eq!(buffer[..length], *request.to_string().as_bytes());
    }
    drop(peer);
    for pod in &mut pods {
        assert_eq!(pod.read(&mut [0; 8]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_port_that_reads_nothing_holds_bounded_buffers() {
    let (mut peer, mut connections) = ports(1024);
    open_port(&mut peer, "error", 1, "80", "0").await;
    open_port(&mut peer, "data", 3, "80", "0").await;
    let _pod = connections.recv().await.unwrap();
    let flood = async {
        for sent in 0u32.. {
            peer.data(3, &"x".repeat(32 << 10)).await;
            assert!(sent < 200, "nothing stops the client");
        }
    };
    assert!(timeout(Duration::from_millis(300), flood).await.is_err());
}
