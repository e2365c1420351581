//! Decodes frames as their bytes come. Payloads of messages are passed on in pieces, so that no length that a client names is held.

use super::{MAX_CONTROL_BYTES, Opcode};
use crate::StreamingError;

/// A head has two bytes, at most eight of length, and four of the mask.
const MAX_HEAD_BYTES: usize = 14;

/// Whether the other end masks its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameMasking {
    /// The other end is a client: every frame must be masked.
    Masked,
    /// The other end is a server: no frame may be masked.
    Unmasked,
}

/// What was decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebSocketEvent {
    /// A piece of a message.
    Data {
        /// Its bytes, unmasked.
        bytes: Vec<u8>,
        /// Whether a message begins with it.
        is_first: bool,
        /// Whether the message ends with it.
        is_last: bool,
        /// Whether the message is text.
        is_text: bool,
    },
    /// A ping with its payload, which the pong has to repeat.
    Ping(Vec<u8>),
    /// The answer to a ping.
    Pong,
    /// The other end sends no more; with its status code, if it gave one.
    Close(Option<u16>),
}

/// Decodes the frames of one direction.
#[derive(Debug)]
pub struct WebSocketDecoder {
    masking: FrameMasking,
    /// Bytes of a head that is not complete.
    head: Vec<u8>,
    frame: Option<FrameState>,
    /// Whether the message under way is text; none between messages.
    message: Option<bool>,
    is_closed: bool,
}

#[derive(Debug)]
struct FrameState {
    opcode: Opcode,
    is_final: bool,
    /// Bytes of the payload that have not come.
    remaining: u64,
    mask: [u8; 4],
    /// How many bytes of the payload have come, modulo four.
    mask_offset: usize,
    /// Whether a message begins with the next piece.
    is_first: bool,
    /// The payload of a control frame.
    control: Vec<u8>,
}

impl WebSocketDecoder {
    /// Decodes what the other end sends.
    pub fn new(masking: FrameMasking) -> Self {
        Self { masking, head: Vec::new(), frame: None, message: None, is_closed: false }
    }

    /// Decodes the next bytes. Bytes after a close are ignored.
    ///
    /// # Errors
    /// When a frame is not allowed; nothing can be decoded after that.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Vec<WebSocketEvent>, StreamingError> {
        let mut events = Vec::new();
        while !bytes.is_empty() && !self.is_closed {
            match self.frame.take() {
                None => bytes = self.read_head(bytes, &mut events)?,
                Some(frame) => bytes = self.read_payload(frame, bytes, &mut events)?,
            }
        }
        Ok(events)
    }

    fn read_head<'a>(
        &mut self,
        bytes: &'a [u8],
        events: &mut Vec<WebSocketEvent>,
    ) -> Result<&'a [u8], StreamingError> {
        let (first, rest) = bytes.split_at(1);
        self.head.extend_from_slice(first);
        debug_assert!(self.head.len() <= MAX_HEAD_BYTES, "a head is complete before");
        if let Some(frame) = self.parse_head()? {
            self.head.clear();
            if frame.remaining == 0 {
                self.end_frame(frame, Vec::new(), events)?;
            } else {
                self.frame = Some(frame);
            }
        }
        Ok(rest)
    }

    /// The frame that begins, once its head is complete.
    fn parse_head(&mut self) -> Result<Option<FrameState>, StreamingError> {
        let [first, second, rest @ ..] = self.head.as_slice() else { return Ok(None) };
        if first & 0x70 != 0 {
            return Err(StreamingError::WebSocket("a reserved bit is set"));
        }
        let opcode = Opcode::from_bits(first & 0x0f)
            .ok_or(StreamingError::WebSocket("the opcode is unknown"))?;
        let (is_final, is_masked) = (first & 0x80 != 0, second & 0x80 != 0);
        if is_masked != (self.masking == FrameMasking::Masked) {
            return Err(StreamingError::WebSocket("the masking is not that of its side"));
        }
        let length_bytes = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if opcode.is_control() && (length_bytes > 0 || !is_final) {
            return Err(StreamingError::WebSocket("a control frame is too long or fragmented"));
        }
        let mask_bytes = if is_masked { 4 } else { 0 };
        if rest.len() < length_bytes + mask_bytes {
            return Ok(None);
        }
        let (length, mask) = rest.split_at(length_bytes);
        let remaining = match length_bytes {
            0 => u64::from(second & 0x7f),
            _ => length.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        };
        if remaining >> 63 != 0 {
            return Err(StreamingError::WebSocket("the length is too large"));
        }
        let mask = <[u8; 4]>::try_from(mask).unwrap_or_default();
        let is_first = self.begin(opcode)?;
        let control = Vec::new();
        Ok(Some(FrameState {
            opcode,
            is_final,
            remaining,
            mask,
            mask_offset: 0,
            is_first,
            control,
        }))
    }

    /// Whether a message begins with the frame.
    fn begin(&mut self, opcode: Opcode) -> Result<bool, StreamingError> {
        match (opcode, self.message) {
            (Opcode::Text | Opcode::Binary, None) => {
                self.message = Some(opcode == Opcode::Text);
                Ok(true)
            }
            (Opcode::Text | Opcode::Binary, Some(_)) => {
                Err(StreamingError::WebSocket("a message begins within another"))
            }
            (Opcode::Continuation, None) => {
                Err(StreamingError::WebSocket("a continuation without a message"))
            }
            _ => Ok(false),
        }
    }

    fn read_payload<'a>(
        &mut self,
        mut frame: FrameState,
        bytes: &'a [u8],
        events: &mut Vec<WebSocketEvent>,
    ) -> Result<&'a [u8], StreamingError> {
        let length = usize::try_from(frame.remaining).unwrap_or(usize::MAX).min(bytes.len());
        let (payload, rest) = bytes.split_at(length);
        let unmasked = frame.unmask(payload);
        frame.remaining -= length as u64;
        if frame.remaining == 0 {
            self.end_frame(frame, unmasked, events)?;
            return Ok(rest);
        }
        if frame.opcode.is_control() {
            frame.control.extend(unmasked);
            debug_assert!(frame.control.len() <= MAX_CONTROL_BYTES, "checked with the head");
        } else {
            events.push(self.piece(&frame, unmasked, false));
            frame.is_first = false;
        }
        self.frame = Some(frame);
        Ok(rest)
    }

    fn piece(&self, frame: &FrameState, bytes: Vec<u8>, is_last: bool) -> WebSocketEvent {
        let is_text = self.message == Some(true);
        WebSocketEvent::Data { bytes, is_first: frame.is_first, is_last, is_text }
    }

    fn end_frame(
        &mut self,
        mut frame: FrameState,
        bytes: Vec<u8>,
        events: &mut Vec<WebSocketEvent>,
    ) -> Result<(), StreamingError> {
        if !frame.opcode.is_control() {
            events.push(self.piece(&frame, bytes, frame.is_final));
            if frame.is_final {
                self.message = None;
            }
            return Ok(());
        }
        frame.control.extend(bytes);
        events.push(match frame.opcode {
            Opcode::Ping => WebSocketEvent::Ping(frame.control),
            Opcode::Pong => WebSocketEvent::Pong,
            _ => {
                self.is_closed = true;
                close_event(&frame.control)?
            }
        });
        Ok(())
    }
}

fn close_event(payload: &[u8]) -> Result<WebSocketEvent, StreamingError> {
    match payload {
        [] => Ok(WebSocketEvent::Close(None)),
        [_] => Err(StreamingError::WebSocket("a close has half a status code")),
        [high, low, ..] => Ok(WebSocketEvent::Close(Some(u16::from_be_bytes([*high, *low])))),
    }
}

impl FrameState {
    fn unmask(&mut self, payload: &[u8]) -> Vec<u8> {
        let offset = self.mask_offset;
        self.mask_offset = (offset + payload.len()) % 4;
        let masked = payload.iter().enumerate();
        masked.map(|(index, byte)| byte ^ self.mask[(offset + index) % 4]).collect()
    }
}
