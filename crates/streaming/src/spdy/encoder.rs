//! Encodes the frames of one direction.

use super::header_block::HeaderDeflater;
use super::{FLAG_FIN, STREAM_ID_MASK, SpdyFrame, VERSION};

/// Encodes the frames of one direction, whose headers are compressed as one stream.
#[derive(Debug, Default)]
pub struct SpdyEncoder {
    headers: HeaderDeflater,
}

impl SpdyEncoder {
    /// Encodes a frame.
    pub fn encode(&mut self, frame: &SpdyFrame, out: &mut Vec<u8>) {
        match frame {
            SpdyFrame::Data { stream, fin, bytes } => data(*stream, *fin, bytes, out),
            SpdyFrame::SynStream { stream, fin, headers } => {
                let mut payload = id(*stream).to_vec();
                // No associated stream, the highest priority, no slot.
                payload.extend([0; 6]);
                self.headers.write(headers, &mut payload);
                control(1, flags(*fin), &payload, out);
            }
            SpdyFrame::SynReply { stream, fin, headers } => {
                self.with_headers(2, *stream, *fin, headers, out);
            }
            SpdyFrame::RstStream { stream, status } => {
                control(3, 0, &[id(*stream), status.to_be_bytes()].concat(), out);
            }
            SpdyFrame::Settings(settings) => {
                let count = u32::try_from(settings.len()).unwrap_or(u32::MAX);
                let mut payload = count.to_be_bytes().to_vec();
                for (setting, value) in settings {
                    payload.extend((setting & 0x00ff_ffff).to_be_bytes());
                    payload.extend(value.to_be_bytes());
                }
                control(4, 0, &payload, out);
            }
            SpdyFrame::Ping(number) => control(6, 0, &number.to_be_bytes(), out),
            SpdyFrame::GoAway { last_stream, status } => {
                control(7, 0, &[id(*last_stream), status.to_be_bytes()].concat(), out);
            }
            SpdyFrame::Headers { stream, fin, headers } => {
                self.with_headers(8, *stream, *fin, headers, out);
            }
            SpdyFrame::WindowUpdate { stream, delta } => {
                control(9, 0, &[id(*stream), id(*delta)].concat(), out);
            }
        }
    }

    fn with_headers(
        &mut self,
        kind: u16,
        stream: u32,
        fin: bool,
        headers: &[(String, String)],
        out: &mut Vec<u8>,
    ) {
        let mut payload = id(stream).to_vec();
        self.headers.write(headers, &mut payload);
        control(kind, flags(fin), &payload, out);
    }
}

/// Encodes a DATA frame without copying its bytes before.
pub(crate) fn data(stream: u32, fin: bool, bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(id(stream));
    out.extend(flags_and_length(flags(fin), bytes.len()));
    out.extend_from_slice(bytes);
}

fn control(kind: u16, flags: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.extend((0x8000 | VERSION).to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(flags_and_length(flags, payload.len()));
    out.extend_from_slice(payload);
}

/// Lengths have 24 bits. Callers send less: data in parts of `MAX_DATA_BYTES`, headers of a few bytes.
fn flags_and_length(flags: u8, length: usize) -> [u8; 4] {
    let length = u32::try_from(length).unwrap_or(u32::MAX) & 0x00ff_ffff;
    (u32::from(flags) << 24 | length).to_be_bytes()
}

fn flags(fin: bool) -> u8 {
    if fin { FLAG_FIN } else { 0 }
}

fn id(stream: u32) -> [u8; 4] {
    (stream & STREAM_ID_MASK).to_be_bytes()
}
