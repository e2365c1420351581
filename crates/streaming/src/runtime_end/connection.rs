//! The server's end of a SPDY connection: accepts streams, and answers pings.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::sync::Mutex;

use super::READ_BYTES;
use crate::spdy::{MAX_DATA_BYTES, SpdyDecoder, SpdyEncoder, SpdyFrame, SpdyHeaders, push_data};

/// What a client did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClientEvent {
    /// It opened a stream, which has been accepted.
    Opened { stream: u32, headers: SpdyHeaders },
    /// It sent bytes on a stream.
    Data { stream: u32, bytes: Vec<u8> },
    /// It sends no more on a stream.
    Ended { stream: u32 },
}

/// Both directions of a connection, which are used apart.
pub(super) fn connection<S>(stream: S) -> (ClientReader<S>, Mutex<ClientWriter<S>>)
where
    S: AsyncRead + AsyncWrite,
{
    let (stream, writer) = split(stream);
    let reader = ClientReader {
        stream,
        decoder: SpdyDecoder::default(),
        buffer: vec![0; READ_BYTES],
        events: VecDeque::new(),
    };
    let writer = ClientWriter { stream: writer, encoder: SpdyEncoder::default(), wire: Vec::new() };
    (reader, writer.into())
}

#[derive(Debug)]
pub(super) struct ClientReader<S> {
    stream: ReadHalf<S>,
    decoder: SpdyDecoder,
    buffer: Vec<u8>,
    /// What was read and is not taken yet: no more than one buffer full of frames.
    events: VecDeque<ClientEvent>,
}

#[derive(Debug)]
pub(super) struct ClientWriter<S> {
    stream: WriteHalf<S>,
    encoder: SpdyEncoder,
    /// What is not written yet of the last frame. A call that is given up leaves it to the next one, so that frames stay whole.
    wire: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite> ClientReader<S> {
    /// What comes next; none when the client is gone or not understood.
    pub(super) async fn next(&mut self, writer: &Mutex<ClientWriter<S>>) -> Option<ClientEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let length = self.stream.read(&mut self.buffer).await.ok().filter(|it| *it > 0)?;
            for frame in self.decoder.feed(self.buffer.get(..length)?).ok()? {
                self.take(frame, writer).await?;
            }
        }
    }

    /// Has these come next, in the place of what has been read already.
    pub(super) fn give_back(&mut self, mut events: VecDeque<ClientEvent>) {
        events.append(&mut self.events);
        self.events = events;
    }

    async fn take(&mut self, frame: SpdyFrame, writer: &Mutex<ClientWriter<S>>) -> Option<()> {
        match frame {
            SpdyFrame::SynStream { stream, fin, headers } => {
                self.events.push_back(ClientEvent::Opened { stream, headers });
                self.end_if(fin, stream);
                let reply = SpdyFrame::SynReply { stream, fin: false, headers: Vec::new() };
                writer.lock().await.send(&reply).await?;
            }
            SpdyFrame::Data { stream, fin, bytes } => {
                if !bytes.is_empty() {
                    self.events.push_back(ClientEvent::Data { stream, bytes });
                }
                self.end_if(fin, stream);
            }
            SpdyFrame::Headers { stream, fin, .. } => self.end_if(fin, stream),
            SpdyFrame::RstStream { stream, .. } => self.end_if(true, stream),
            // Pings of a client have odd numbers; the others would be answers to ours.
            SpdyFrame::Ping(number) if !number.is_multiple_of(2) => {
                writer.lock().await.send(&SpdyFrame::Ping(number)).await?;
            }
            SpdyFrame::SynReply { .. }
            | SpdyFrame::Settings(_)
            | SpdyFrame::Ping(_)
            | SpdyFrame::GoAway { .. }
            | SpdyFrame::WindowUpdate { .. } => {}
        }
        Some(())
    }

    fn end_if(&mut self, fin: bool, stream: u32) {
        if fin {
            self.events.push_back(ClientEvent::Ended { stream });
        }
    }
}

/// All of these give none when the client is gone.
impl<S: AsyncWrite> ClientWriter<S> {
    async fn send(&mut self, frame: &SpdyFrame) -> Option<()> {
        self.encoder.encode(frame, &mut self.wire);
        self.flush().await
    }

    async fn flush(&mut self) -> Option<()> {
        while !self.wire.is_empty() {
            let length = self.stream.write(&self.wire).await.ok().filter(|it| *it > 0)?;
            self.wire.drain(..length);
        }
        Some(())
    }

    /// Sends bytes on a stream.
    pub(super) async fn data(&mut self, stream: u32, bytes: &[u8]) -> Option<()> {
        for piece in bytes.chunks(MAX_DATA_BYTES) {
            push_data(stream, false, piece, &mut self.wire);
            self.flush().await?;
        }
        Some(())
    }

    /// Sends no more on a stream.
    pub(super) async fn end(&mut self, stream: u32) -> Option<()> {
        push_data(stream, true, &[], &mut self.wire);
        self.flush().await
    }

    /// Ends a stream in both directions.
    pub(super) async fn reset(&mut self, stream: u32, status: u32) -> Option<()> {
        self.send(&SpdyFrame::RstStream { stream, status }).await
    }
}
