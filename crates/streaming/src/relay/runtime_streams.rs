//! The streams of a SPDY connection to a runtime, which a relay opens at its start.

use crate::StreamingError;
use crate::spdy::{MAX_DATA_BYTES, SpdyDecoder, SpdyEncoder, SpdyFrame, SpdyHeaders};

/// The runtime may open no streams.
const RST_REFUSED: u32 = 3;

/// The streams that were opened, by the channel that each belongs to.
#[derive(Debug, Default)]
pub(super) struct RuntimeStreams {
    decoder: SpdyDecoder,
    encoder: SpdyEncoder,
    streams: Vec<StreamState>,
}

#[derive(Debug)]
struct StreamState {
    channel: u8,
    is_accepted: bool,
    /// Whether the runtime sends no more on it.
    is_ended: bool,
    /// Whether this side sends no more on it.
    is_closed: bool,
}

/// What the runtime did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEvent {
    /// It sent bytes on the stream of a channel.
    Data(u8, Vec<u8>),
    /// It sends no more on the stream of a channel.
    End(u8),
}

impl RuntimeStreams {
    /// Opens a stream for a channel.
    pub(super) fn open(&mut self, channel: u8, headers: SpdyHeaders, out: &mut Vec<u8>) {
        let state = StreamState { channel, is_accepted: false, is_ended: false, is_closed: false };
        self.streams.push(state);
        let stream = id(self.streams.len() - 1);
        self.encoder.encode(&SpdyFrame::SynStream { stream, fin: false, headers }, out);
    }

    /// Whether the runtime has accepted or refused every stream.
    pub(super) fn are_accepted(&self) -> bool {
        self.streams.iter().all(|stream| stream.is_accepted || stream.is_ended)
    }

    /// Whether the runtime sends no more on the streams of these channels, as far as they were opened.
    pub(super) fn are_ended(&self, channels: impl Fn(u8) -> bool) -> bool {
        self.streams.iter().filter(|stream| channels(stream.channel)).all(|stream| stream.is_ended)
    }

    /// Sends bytes on a channel's stream, if it is open.
    pub(super) fn send(&mut self, channel: u8, bytes: &[u8], out: &mut Vec<u8>) {
        let Some((stream, _)) = self.open_stream(channel) else { return };
        for piece in bytes.chunks(MAX_DATA_BYTES) {
            crate::spdy::push_data(stream, false, piece, out);
        }
    }

    /// Sends no more on a channel's stream.
    pub(super) fn close(&mut self, channel: u8, out: &mut Vec<u8>) {
        if let Some((stream, state)) = self.open_stream(channel) {
            state.is_closed = true;
            crate::spdy::push_data(stream, true, &[], out);
        }
    }

    fn open_stream(&mut self, channel: u8) -> Option<(u32, &mut StreamState)> {
        let mut numbered = self.streams.iter_mut().enumerate();
        let (index, state) =
            numbered.find(|(_, state)| state.channel == channel && !state.is_closed)?;
        Some((id(index), state))
    }

    /// Takes bytes of the runtime; replies to it are added to `out`.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Vec<StreamEvent>, StreamingError> {
        let mut events = Vec::new();
        for frame in self.decoder.feed(bytes)? {
            self.apply(frame, &mut events, out);
        }
        Ok(events)
    }

    fn apply(&mut self, frame: SpdyFrame, events: &mut Vec<StreamEvent>, out: &mut Vec<u8>) {
        match frame {
            SpdyFrame::SynReply { stream, fin, .. } => {
                if let Some(state) = self.state(stream) {
                    state.is_accepted = true;
                }
                self.end_if(fin, stream, events);
            }
            SpdyFrame::Data { stream, fin, bytes } => {
                if let Some(state) = self.state(stream).filter(|state| !state.is_ended)
                    && !bytes.is_empty()
                {
                    events.push(StreamEvent::Data(state.channel, bytes));
                }
                self.end_if(fin, stream, events);
            }
            SpdyFrame::RstStream { stream, .. } => {
                if let Some(state) = self.state(stream) {
                    state.is_closed = true;
                }
                self.end_if(true, stream, events);
            }
            SpdyFrame::Headers { stream, fin, .. } => self.end_if(fin, stream, events),
            SpdyFrame::SynStream { stream, .. } => {
                self.encoder.encode(&SpdyFrame::RstStream { stream, status: RST_REFUSED }, out);
            }
            // Pings of a server have even numbers; the others would be answers to ours.
            SpdyFrame::Ping(number) if number.is_multiple_of(2) => {
                self.encoder.encode(&SpdyFrame::Ping(number), out);
            }
            SpdyFrame::Ping(_)
            | SpdyFrame::Settings(_)
            | SpdyFrame::GoAway { .. }
            | SpdyFrame::WindowUpdate { .. } => {}
        }
    }

    fn end_if(&mut self, fin: bool, stream: u32, events: &mut Vec<StreamEvent>) {
        if let Some(state) = self.state(stream).filter(|state| fin && !state.is_ended) {
            state.is_ended = true;
            events.push(StreamEvent::End(state.channel));
        }
    }

    fn state(&mut self, stream: u32) -> Option<&mut StreamState> {
        let index = stream.checked_sub(1).filter(|even| even.is_multiple_of(2))? / 2;
        self.streams.get_mut(usize::try_from(index).ok()?)
    }
}

/// The id of the stream that was opened as number `index`: a client's ids are odd.
fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX / 4) * 2 + 1
}
