//! Moves the bytes of a relay between its two connections, in bounded buffers, until either side ends.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Relay, RelayOutput};
use crate::StreamingError;

/// What is read at once.
const READ_BYTES: usize = 32 * 1024;
/// A side is not read while so much waits for it, such as answers to its pings.
const MAX_WAITING: usize = 2 * READ_BYTES;
/// How long the runtime may take to accept the streams: that of the Go kubelet.
const LONGEST_ACCEPTANCE: Duration = Duration::from_secs(30);
/// How long the runtime may take to read the last bytes.
const LONGEST_RUNTIME_FLUSH: Duration = Duration::from_secs(10);
/// How long a client may: its user may look at a page of output for long. A server's own limit for writes may end it earlier.
const LONGEST_CLIENT_FLUSH: Duration = Duration::from_secs(4 * 60 * 60);
/// A client that is not read, because the runtime takes nothing, is asked so often whether it is there: nothing else would tell that it is gone.
const CLIENT_PROBE_INTERVAL: Duration = Duration::from_secs(15);
/// Stands for never.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How a relayed connection ended.
#[derive(Debug)]
pub struct RelayReport {
    /// Bytes that the client sent.
    pub from_client: u64,
    /// Bytes that the runtime sent.
    pub from_runtime: u64,
    /// Whether either side ended it, or what failed.
    pub outcome: Result<(), StreamingError>,
}

/// Relays until either side ends, nothing is sent for `idle` (zero for no limit), or something fails.
pub async fn run<C, R>(
    client: C,
    runtime: R,
    mut relay: Box<dyn Relay>,
    idle: Duration,
) -> RelayReport
where
    C: AsyncRead + AsyncWrite,
    R: AsyncRead + AsyncWrite,
{
    let mut pump = Pump {
        client: Side::new(client),
        runtime: Side::new(runtime),
        out: RelayOutput::default(),
        idle: if idle.is_zero() { NEVER } else { idle },
    };
    relay.start(&mut pump.out);
    let outcome = pump.relay(relay.as_mut()).await;
    relay.finish(&mut pump.out);
    pump.flush().await;
    let (from_client, from_runtime) = (pump.client.received, pump.runtime.received);
    RelayReport { from_client, from_runtime, outcome }
}

struct Pump<C, R> {
    client: Side<C>,
    runtime: Side<R>,
    out: RelayOutput,
    idle: Duration,
}

struct Side<S> {
    reader: ReadHalf<S>,
    writer: WriteHalf<S>,
    buffer: Vec<u8>,
    received: u64,
    /// Whether it sends no more.
    has_ended: bool,
    /// Whether bytes were written that may wait in the stream's own buffer.
    is_dirty: bool,
}

impl<S: AsyncRead + AsyncWrite> Side<S> {
    fn new(stream: S) -> Self {
        let (reader, writer) = split(stream);
        Self {
            reader,
            writer,
            buffer: vec![0; READ_BYTES],
            received: 0,
            has_ended: false,
            is_dirty: false,
        }
    }
}

/// One step of a side's output: some bytes, or the flush after them. It can be dropped at any time without losing a byte.
async fn write<S: AsyncWrite>(
    writer: &mut WriteHalf<S>,
    waiting: &mut Vec<u8>,
    is_dirty: &mut bool,
) -> io::Result<()> {
    if waiting.is_empty() {
        writer.flush().await?;
        *is_dirty = false;
        return Ok(());
    }
    let written = writer.write(waiting).await?;
    *is_dirty = true;
    if written == 0 {
        return Err(io::ErrorKind::WriteZero.into());
    }
    waiting.drain(..written);
    Ok(())
}

impl<C: AsyncRead + AsyncWrite, R: AsyncRead + AsyncWrite> Pump<C, R> {
    async fn relay(&mut self, relay: &mut dyn Relay) -> Result<(), StreamingError> {
        let accept_by = Instant::now() + LONGEST_ACCEPTANCE;
        let mut last_use = Instant::now();
        let mut probe_client_at = last_use + CLIENT_PROBE_INTERVAL;
        while !self.out.is_done {
            let is_accepted = relay.is_accepted();
            let Self { client, runtime, out, idle } = self;
            let reads_client = !client.has_ended
                && is_accepted
                && out.to_runtime.is_empty()
                && out.to_client.len() < MAX_WAITING;
            if reads_client {
                probe_client_at = Instant::now() + CLIENT_PROBE_INTERVAL;
            }
            let probes_client = !reads_client && !client.has_ended && out.to_client.is_empty();
            let reads_runtime = out.to_client.is_empty() && out.to_runtime.len() < MAX_WAITING;
            let (writes_client, writes_runtime) = (
                client.is_dirty || !out.to_client.is_empty(),
                runtime.is_dirty || !out.to_runtime.is_empty(),
            );
            tokio::select! {
                read = client.reader.read(&mut client.buffer), if reads_client => {
                    let length = read.map_err(|error| failure("client", &error))?;
                    if length == 0 {
                        client.has_ended = true;
                        relay.client_ended(out);
                        continue;
                    }
                    client.received += length as u64;
                    relay.client_sent(&client.buffer[..length], out)?;
                    // Pings of a client keep nothing alive.
                    if !out.to_runtime.is_empty() {
                        last_use = Instant::now();
                    }
                }
                read = runtime.reader.read(&mut runtime.buffer), if reads_runtime => {
                    let length = read.map_err(|error| failure("runtime", &error))?;
                    if length == 0 {
                        return Ok(());
                    }
                    runtime.received += length as u64;
                    relay.runtime_sent(&runtime.buffer[..length], out)?;
                    last_use = Instant::now();
                }
                written = write(&mut client.writer, &mut out.to_client, &mut client.is_dirty), if writes_client => {
                    written.map_err(|error| failure("client", &error))?;
                }
                written = write(&mut runtime.writer, &mut out.to_runtime, &mut runtime.is_dirty), if writes_runtime => {
                    written.map_err(|error| failure("runtime", &error))?;
                }
                () = sleep_until(probe_client_at), if probes_client => {
                    relay.probe_client(out);
                    probe_client_at = Instant::now() + CLIENT_PROBE_INTERVAL;
                }
                () = sleep_until(accept_by), if !is_accepted => return Err(StreamingError::NotAccepted),
                () = sleep_until(last_use + *idle) => return Err(StreamingError::Idle),
            }
        }
        Ok(())
    }

    /// Sends what is left to both sides, and closes them. Each has its own time for it.
    async fn flush(&mut self) {
        let Self { client, runtime, out, .. } = self;
        let to_client = finish(&mut client.writer, &out.to_client, LONGEST_CLIENT_FLUSH);
        let to_runtime = finish(&mut runtime.writer, &out.to_runtime, LONGEST_RUNTIME_FLUSH);
        tokio::join!(to_client, to_runtime);
    }
}

/// A side that fails here has gone, or is of no use any more.
async fn finish<S: AsyncWrite>(writer: &mut WriteHalf<S>, waiting: &[u8], max_wait: Duration) {
    let sent = async {
        writer.write_all(waiting).await?;
        writer.shutdown().await
    };
    drop(timeout(max_wait, sent).await);
}

fn failure(side: &'static str, error: &io::Error) -> StreamingError {
    StreamingError::Io { side, message: error.to_string() }
}
