//! Decodes frames as their bytes come. Data is passed on in pieces; other frames are short, and held until they are complete.

use super::header_block::HeaderInflater;
use super::{FLAG_FIN, FLAG_UNIDIRECTIONAL, STREAM_ID_MASK, SpdyFrame, VERSION};
use crate::StreamingError;

/// A frame begins with its kind or stream, its flags and its length.
const HEAD_BYTES: usize = 8;
/// The longest frame other than data. The headers of a stream have some dozen bytes.
const MAX_CONTROL_BYTES: usize = 64 * 1024;

/// Decodes the frames of one direction.
#[derive(Debug, Default)]
pub struct SpdyDecoder {
    /// Bytes of a head or of a control frame that is not complete.
    pending: Vec<u8>,
    data: Option<DataState>,
    headers: HeaderInflater,
}

#[derive(Debug)]
struct DataState {
    stream: u32,
    fin: bool,
    remaining: usize,
}

impl SpdyDecoder {
    /// Decodes the next bytes.
    ///
    /// # Errors
    /// When a frame is not allowed; nothing can be decoded after that.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<SpdyFrame>, StreamingError> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            bytes = match self.data.take() {
                Some(data) => self.read_data(data, bytes, &mut frames),
                None => self.read_pending(bytes, &mut frames)?,
            };
        }
        Ok(frames)
    }

    fn read_data<'a>(
        &mut self,
        mut data: DataState,
        bytes: &'a [u8],
        frames: &mut Vec<SpdyFrame>,
    ) -> &'a [u8] {
        let (piece, rest) = bytes.split_at(data.remaining.min(bytes.len()));
        data.remaining -= piece.len();
        let fin = data.fin && data.remaining == 0;
        frames.push(SpdyFrame::Data { stream: data.stream, fin, bytes: piece.to_vec() });
        if data.remaining > 0 {
            self.data = Some(data);
        }
        rest
    }

    /// Completes the head, and then the payload of a control frame.
    fn read_pending<'a>(
        &mut self,
        bytes: &'a [u8],
        frames: &mut Vec<SpdyFrame>,
    ) -> Result<&'a [u8], StreamingError> {
        let rest = self.take_until(HEAD_BYTES, bytes);
        let Some((head, _)) = self.pending.split_first_chunk::<HEAD_BYTES>() else {
            return Ok(rest);
        };
        let [a, b, c, d, flags, e, f, g] = *head;
        let word = u32::from_be_bytes([a, b, c, d]);
        let length = u32::from_be_bytes([0, e, f, g]) as usize;
        if word & !STREAM_ID_MASK == 0 {
            self.pending.clear();
            self.begin_data(word, flags, length, frames)?;
            return Ok(rest);
        }
        let kind = u16::from_be_bytes([c, d]);
        if u16::from_be_bytes([a, b]) & 0x7fff != VERSION {
            return Err(StreamingError::Spdy("the version is not 3"));
        }
        if length > MAX_CONTROL_BYTES {
            return Err(StreamingError::Spdy("a control frame is too long"));
        }
        let rest = self.take_until(HEAD_BYTES + length, rest);
        if self.pending.len() == HEAD_BYTES + length {
            let payload = std::mem::take(&mut self.pending);
            frames.extend(self.control(kind, flags, &payload[HEAD_BYTES..])?);
        }
        Ok(rest)
    }

    /// Adds bytes until so many are pending, and returns the rest.
    fn take_until<'a>(&mut self, length: usize, bytes: &'a [u8]) -> &'a [u8] {
        let missing = length.saturating_sub(self.pending.len()).min(bytes.len());
        let (taken, rest) = bytes.split_at(missing);
        self.pending.extend_from_slice(taken);
        rest
    }

    fn begin_data(
        &mut self,
        stream: u32,
        flags: u8,
        length: usize,
        frames: &mut Vec<SpdyFrame>,
    ) -> Result<(), StreamingError> {
        if stream == 0 {
            return Err(StreamingError::Spdy("data without a stream"));
        }
        let fin = flags & FLAG_FIN != 0;
        if length == 0 {
            frames.push(SpdyFrame::Data { stream, fin, bytes: Vec::new() });
        } else {
            self.data = Some(DataState { stream, fin, remaining: length });
        }
        Ok(())
    }

    /// The frame of a control frame's payload; none of a kind that means nothing here.
    fn control(
        &mut self,
        kind: u16,
        flags: u8,
        payload: &[u8],
    ) -> Result<Option<SpdyFrame>, StreamingError> {
        let fin = flags & FLAG_FIN != 0;
        Ok(Some(match kind {
            1 => {
                let (stream, rest) = stream_and_rest(payload)?;
                let block =
                    rest.get(6..).ok_or(StreamingError::Spdy("a SYN_STREAM is too short"))?;
                if flags & FLAG_UNIDIRECTIONAL != 0 {
                    return Err(StreamingError::Spdy("a stream goes one way only"));
                }
                SpdyFrame::SynStream { stream, fin, headers: self.headers.read(block)? }
            }
            2 => {
                let (stream, block) = stream_and_rest(payload)?;
                SpdyFrame::SynReply { stream, fin, headers: self.headers.read(block)? }
            }
            3 => {
                let [stream, status] = two_numbers(payload)?;
                SpdyFrame::RstStream { stream: stream & STREAM_ID_MASK, status }
            }
            4 => SpdyFrame::Settings(settings(payload)?),
            6 => SpdyFrame::Ping(u32::from_be_bytes(
                payload.try_into().map_err(|_| StreamingError::Spdy("a PING is not of 4 bytes"))?,
            )),
            7 => {
                let [last_stream, status] = two_numbers(payload)?;
                SpdyFrame::GoAway { last_stream: last_stream & STREAM_ID_MASK, status }
            }
            8 => {
                let (stream, block) = stream_and_rest(payload)?;
                SpdyFrame::Headers { stream, fin, headers: self.headers.read(block)? }
            }
            9 => {
                let [stream, delta] = two_numbers(payload)?;
                let (stream, delta) = (stream & STREAM_ID_MASK, delta & STREAM_ID_MASK);
                SpdyFrame::WindowUpdate { stream, delta }
            }
            // The protocol says that unknown kinds are ignored.
            _ => return Ok(None),
        }))
    }
}

fn stream_and_rest(payload: &[u8]) -> Result<(u32, &[u8]), StreamingError> {
    let (stream, rest) =
        payload.split_first_chunk::<4>().ok_or(StreamingError::Spdy("a frame is too short"))?;
    match u32::from_be_bytes(*stream) & STREAM_ID_MASK {
        0 => Err(StreamingError::Spdy("a frame of no stream")),
        stream => Ok((stream, rest)),
    }
}

fn two_numbers(payload: &[u8]) -> Result<[u32; 2], StreamingError> {
    let bytes = <&[u8; 8]>::try_from(payload)
        .map_err(|_| StreamingError::Spdy("a frame is not of 8 bytes"))?;
    let [a, b, c, d, e, f, g, h] = *bytes;
    Ok([u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])])
}

fn settings(payload: &[u8]) -> Result<Vec<(u32, u32)>, StreamingError> {
    let cut = StreamingError::Spdy("a SETTINGS frame has another length than it says");
    let (count, rest) = payload.split_first_chunk::<4>().ok_or_else(|| cut.clone())?;
    if rest.len() as u64 != u64::from(u32::from_be_bytes(*count)) * 8 {
        return Err(cut);
    }
    let pairs = rest.chunks_exact(8).map(two_numbers);
    pairs.map(|pair| pair.map(|[setting, value]| (setting & 0x00ff_ffff, value))).collect()
}
