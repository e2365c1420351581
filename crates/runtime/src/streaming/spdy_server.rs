//! The server's end of a SPDY connection: accepts every stream, and answers pings.

use std::collections::VecDeque;

use oarsman_streaming::spdy::{MAX_DATA_BYTES, SpdyDecoder, SpdyEncoder, SpdyFrame, SpdyHeaders};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};

/// What a client did.
#[derive(Debug)]
pub(super) enum ClientEvent {
    Opened {
        stream: u32,
        headers: SpdyHeaders,
    },
    Data {
        stream: u32,
        bytes: Vec<u8>,
    },
    /// It sends no more on that stream.
    Ended {
        stream: u32,
    },
}

/// Both directions, which are used apart.
pub(super) struct SpdyServer {
    pub(super) reader: ClientReader,
    pub(super) writer: tokio::sync::Mutex<ClientWriter>,
}

pub(super) struct ClientReader {
    stream: ReadHalf<DuplexStream>,
    decoder: SpdyDecoder,
    waiting: VecDeque<SpdyFrame>,
}

pub(super) struct ClientWriter {
    stream: WriteHalf<DuplexStream>,
    encoder: SpdyEncoder,
}

impl SpdyServer {
    pub(super) fn new(stream: DuplexStream) -> Self {
        let (reader, writer) = split(stream);
        let (decoder, waiting) = (SpdyDecoder::default(), VecDeque::new());
        Self {
            reader: ClientReader { stream: reader, decoder, waiting },
            writer: ClientWriter { stream: writer, encoder: SpdyEncoder::default() }.into(),
        }
    }
}

impl ClientReader {
    /// What comes next; none when the client is gone or not understood.
    pub(super) async fn next(
        &mut self,
        writer: &tokio::sync::Mutex<ClientWriter>,
    ) -> Option<ClientEvent> {
        loop {
            let Some(frame) = self.waiting.pop_front() else {
                let mut buffer = vec![0; MAX_DATA_BYTES];
                let count = self.stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
                self.waiting.extend(self.decoder.feed(buffer.get(..count)?).ok()?);
                continue;
            };
            match frame {
                SpdyFrame::SynStream { stream, headers, .. } => {
                    let reply = SpdyFrame::SynReply { stream, fin: false, headers: Vec::new() };
                    writer.lock().await.send(&reply).await?;
                    return Some(ClientEvent::Opened { stream, headers });
                }
                SpdyFrame::Data { stream, fin, bytes } => {
                    if fin {
                        self.waiting.push_front(SpdyFrame::RstStream { stream, status: 0 });
                    }
                    return Some(ClientEvent::Data { stream, bytes });
                }
                SpdyFrame::RstStream { stream, .. } => return Some(ClientEvent::Ended { stream }),
                SpdyFrame::Ping(number) if !number.is_multiple_of(2) => {
                    writer.lock().await.send(&SpdyFrame::Ping(number)).await?;
                }
                SpdyFrame::GoAway { .. } => return None,
                _ => {}
            }
        }
    }
}

impl ClientWriter {
    /// None when the client is gone.
    async fn send(&mut self, frame: &SpdyFrame) -> Option<()> {
        let mut bytes = Vec::new();
        self.encoder.encode(frame, &mut bytes);
        self.stream.write_all(&bytes).await.ok()
    }

    pub(super) async fn data(&mut self, stream: u32, bytes: &[u8]) -> Option<()> {
        for piece in bytes.chunks(MAX_DATA_BYTES) {
            let bytes = piece.to_vec();
            self.send(&SpdyFrame::Data { stream, fin: false, bytes }).await?;
        }
        Some(())
    }

    pub(super) async fn end(&mut self, stream: u32) -> Option<()> {
        self.send(&SpdyFrame::Data { stream, fin: true, bytes: Vec::new() }).await
    }
}
