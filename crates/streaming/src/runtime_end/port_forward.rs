//! Connections to ports of a pod, each a pair of streams of the client's: data and errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::connection::{ClientEvent, ClientWriter, connection};
use super::{MAX_WAITING_PIECES, READ_BYTES, header};
use crate::spdy::SpdyHeaders;

/// Streams of one client at once. One of them in every connection is a port's.
const MAX_STREAMS: usize = 2048;
/// The status of the reset of a stream that is not taken.
const RST_REFUSED: u32 = 3;

type SharedWriter<S> = Arc<Mutex<ClientWriter<S>>>;

/// The streams of one connection to a port. They come one after the other, and belong together by their request's id.
#[derive(Debug, Default)]
struct StreamPair {
    data: Option<DataStream>,
    error: Option<u32>,
}

/// What a client sends to a port, and where it expects the answer.
#[derive(Debug)]
struct DataStream {
    stream: u32,
    port: u16,
    pieces: mpsc::Receiver<Vec<u8>>,
}

/// Serves a client until it is gone; `connect` gives a connection to a port, or why there is none.
///
/// A port that does not read what is sent to it holds up the client's other connections, once its buffer is full: SPDY as Kubernetes uses it
/// has no flow control of single streams.
pub async fn serve_ports<S, F, T>(stream: S, connect: impl Fn(u16) -> F)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    F: Future<Output = Result<T, String>> + Send + 'static,
    T: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut reader, writer) = connection(stream);
    let mut ports = ForwardedPorts {
        connect,
        writer: Arc::new(writer),
        waiting: BTreeMap::new(),
        inputs: BTreeMap::new(),
        connections: JoinSet::new(),
    };
    let writer = Arc::clone(&ports.writer);
    while let Some(event) = reader.next(&writer).await {
        ports.forget_ended();
        ports.take(event).await;
    }
}

/// The connections of one client. They end with it.
struct ForwardedPorts<S, C> {
    connect: C,
    writer: SharedWriter<S>,
    /// Pairs that are not complete, by the ids of their requests.
    waiting: BTreeMap<String, StreamPair>,
    /// What is sent to a port, by the stream of its data.
    inputs: BTreeMap<u32, mpsc::Sender<Vec<u8>>>,
    /// Each gives the stream of its data.
    connections: JoinSet<u32>,
}

impl<S, C, F, T> ForwardedPorts<S, C>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    C: Fn(u16) -> F,
    F: Future<Output = Result<T, String>> + Send + 'static,
    T: AsyncRead + AsyncWrite + Send + 'static,
{
    fn forget_ended(&mut self) {
        while let Some(ended) = self.connections.try_join_next() {
            if let Ok(stream) = ended {
                self.inputs.remove(&stream);
            }
        }
    }

    async fn take(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Opened { stream, headers } => {
                if self.open(stream, &headers).is_none() {
                    self.writer.lock().await.reset(stream, RST_REFUSED).await;
                }
            }
            ClientEvent::Data { stream, bytes } => {
                if let Some(input) = self.inputs.get(&stream) {
                    // A connection that has ended takes nothing.
                    input.send(bytes).await.ok();
                }
            }
            ClientEvent::Ended { stream } => drop(self.inputs.remove(&stream)),
        }
    }

    /// Begins a connection when both of its streams are there; none for a stream that is not taken.
    fn open(&mut self, stream: u32, headers: &SpdyHeaders) -> Option<()> {
        if 2 * self.connections.len() + self.waiting.len() >= MAX_STREAMS {
            return None;
        }
        let request = header(headers, "requestid").to_owned();
        let pair = self.waiting.entry(request.clone()).or_default();
        match header(headers, "streamtype") {
            "error" => pair.error = Some(stream),
            "data" => {
                let port = header(headers, "port").parse().ok().filter(|port| *port != 0)?;
                // What comes before there is a connection waits for it.
                let (input, pieces) = mpsc::channel(MAX_WAITING_PIECES);
                self.inputs.insert(stream, input);
                pair.data = Some(DataStream { stream, port, pieces });
            }
            _ => return None,
        }
        if pair.data.is_some() && pair.error.is_some() {
            let StreamPair { data, error } = self.waiting.remove(&request)?;
            self.begin(data?, error?);
        }
        Some(())
    }

    fn begin(&mut self, data: DataStream, error: u32) {
        let (connecting, writer) = ((self.connect)(data.port), Arc::clone(&self.writer));
        self.connections.spawn(async move {
            let stream = data.stream;
            match connecting.await {
                Ok(connection) => forward(connection, data, error, &writer).await,
                Err(why) => end(&writer, stream, error, &why).await,
            }
            stream
        });
    }
}

/// Moves bytes until both directions have ended. A connection that breaks is one that has ended.
async fn forward<S: AsyncWrite, T: AsyncRead + AsyncWrite>(
    connection: T,
    data: DataStream,
    error: u32,
    writer: &Mutex<ClientWriter<S>>,
) {
    let (output, input) = split(connection);
    let answer = async {
        receive(output, data.stream, writer).await;
        end(writer, data.stream, error, "").await;
    };
    tokio::join!(send(input, data.pieces), answer);
}

/// Nothing more comes from the port, which is all that many clients wait for.
async fn end<S: AsyncWrite>(writer: &Mutex<ClientWriter<S>>, data: u32, error: u32, why: &str) {
    let mut writer = writer.lock().await;
    writer.data(error, why.as_bytes()).await;
    writer.end(error).await;
    writer.end(data).await;
}

async fn send<T: AsyncWrite>(mut input: WriteHalf<T>, mut pieces: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = pieces.recv().await {
        if input.write_all(&bytes).await.is_err() {
            return;
        }
    }
    // The other end may have closed it before.
    input.shutdown().await.ok();
}

async fn receive<S: AsyncWrite, T: AsyncRead>(
    mut output: ReadHalf<T>,
    stream: u32,
    writer: &Mutex<ClientWriter<S>>,
) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let length = output.read(&mut buffer).await.unwrap_or(0);
        let bytes = buffer.get(..length).unwrap_or_default();
        if bytes.is_empty() || writer.lock().await.data(stream, bytes).await.is_none() {
            return;
        }
    }
}
