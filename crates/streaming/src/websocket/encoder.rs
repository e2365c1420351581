//! Encodes frames. Every message is one frame.

use super::{MAX_CONTROL_BYTES, Opcode};

/// How frames are masked: servers do not, clients must.
pub enum FrameMask {
    /// The frames of a server.
    None,
    /// The frames of a client, with a new mask for each.
    Random(Box<dyn FnMut() -> [u8; 4] + Send>),
}

impl std::fmt::Debug for FrameMask {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if matches!(self, Self::None) { "None" } else { "Random" })
    }
}

/// Encodes the frames of one direction.
#[derive(Debug)]
pub struct WebSocketEncoder {
    mask: FrameMask,
}

impl WebSocketEncoder {
    /// Encodes with that mask.
    pub fn new(mask: FrameMask) -> Self {
        Self { mask }
    }

    /// Encodes a message of bytes, whose payload is `prefix` and then `bytes`.
    pub fn binary(&mut self, prefix: &[u8], bytes: &[u8], out: &mut Vec<u8>) {
        self.frame(Opcode::Binary, &[prefix, bytes], out);
    }

    /// Encodes a message of text.
    pub fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.frame(Opcode::Text, &[text.as_bytes()], out);
    }

    /// Encodes a ping.
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        self.frame(Opcode::Ping, &[], out);
    }

    /// Encodes the answer to a ping.
    pub fn pong(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        let payload = &payload[..payload.len().min(MAX_CONTROL_BYTES)];
        self.frame(Opcode::Pong, &[payload], out);
    }

    /// Encodes a close with its status code.
    pub fn close(&mut self, code: u16, out: &mut Vec<u8>) {
        self.frame(Opcode::Close, &[&code.to_be_bytes()], out);
    }

    fn frame(&mut self, opcode: Opcode, parts: &[&[u8]], out: &mut Vec<u8>) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        out.push(0x80 | opcode.bits());
        let masked = if matches!(self.mask, FrameMask::None) { 0 } else { 0x80 };
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(length), _) if length < 126 => out.push(masked | length),
            (_, Ok(length)) => {
                out.push(masked | 126);
                out.extend(length.to_be_bytes());
            }
            _ => {
                out.push(masked | 127);
                out.extend((length as u64).to_be_bytes());
            }
        }
        match &mut self.mask {
            FrameMask::None => parts.iter().for_each(|part| out.extend_from_slice(part)),
            FrameMask::Random(next) => {
                let mask = next();
                out.extend(mask);
                let payload = parts.iter().copied().flatten().enumerate();
                out.extend(payload.map(|(index, byte)| byte ^ mask[index % 4]));
            }
        }
    }
}
