//! Compressed blocks of headers. All blocks of a direction are one zlib stream.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

use super::{SpdyHeaders, dictionary};
use crate::StreamingError;

/// The headers of a stream have some dozen bytes: a name like `streamtype` and its value.
const MAX_BLOCK_BYTES: usize = 32 * 1024;
const MAX_HEADERS: usize = 100;
/// The window of deflate.
const WINDOW_BYTES: usize = 32 * 1024;
/// The longest stored block of deflate.
const MAX_STORED_BYTES: usize = 65535;

/// The two bytes of a zlib head: deflate with the largest window; a dictionary's checksum follows.
const ZLIB_HEAD: [u8; 2] = [0x78, 0x20];
const FLAG_DICTIONARY: u8 = 0x20;

/// Decompresses the blocks of one direction.
pub(super) struct HeaderInflater {
    state: Box<DecompressorOxide>,
    /// The last bytes of the output, as a ring; it begins with the dictionary.
    window: Vec<u8>,
    position: usize,
    /// The bytes of the zlib head, until it is complete.
    head: Option<Vec<u8>>,
}

impl std::fmt::Debug for HeaderInflater {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HeaderInflater").finish_non_exhaustive()
    }
}

impl Default for HeaderInflater {
    fn default() -> Self {
        Self { state: Box::default(), window: Vec::new(), position: 0, head: Some(Vec::new()) }
    }
}

impl HeaderInflater {
    /// The headers of a block.
    pub(super) fn read(&mut self, block: &[u8]) -> Result<SpdyHeaders, StreamingError> {
        let block = self.skip_head(block)?;
        parse(&self.inflate(block)?)
    }

    /// Reads the head of the zlib stream, which is before the first block.
    fn skip_head<'a>(&mut self, mut block: &'a [u8]) -> Result<&'a [u8], StreamingError> {
        while let (Some(head), Some((first, rest))) = (&mut self.head, block.split_first()) {
            head.push(*first);
            block = rest;
            let [method, flags, checksum @ ..] = head.as_slice() else { continue };
            let is_valid =
                method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31);
            if !is_valid {
                return Err(StreamingError::Spdy("headers are not compressed with zlib"));
            }
            let with_dictionary = flags & FLAG_DICTIONARY != 0;
            if with_dictionary && checksum.len() < 4 {
                continue;
            }
            if with_dictionary && checksum != dictionary::ADLER32 {
                return Err(StreamingError::Spdy("headers are compressed with another dictionary"));
            }
            self.head = None;
            self.window = if with_dictionary { dictionary::dictionary() } else { Vec::new() };
            self.position = self.window.len();
            self.window.resize(WINDOW_BYTES, 0);
        }
        Ok(block)
    }

    fn inflate(&mut self, mut block: &[u8]) -> Result<Vec<u8>, StreamingError> {
        let mut output = Vec::new();
        if self.head.is_some() {
            return Ok(output);
        }
        loop {
            let (status, read, written) = decompress(
                &mut self.state,
                block,
                &mut self.window,
                self.position,
                TINFL_FLAG_HAS_MORE_INPUT,
            );
            output.extend_from_slice(&self.window[self.position..self.position + written]);
            self.position = (self.position + written) % WINDOW_BYTES;
            block = &block[read..];
            if output.len() > MAX_BLOCK_BYTES {
                return Err(StreamingError::Spdy("headers are too long"));
            }
            match status {
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput if block.is_empty() => return Ok(output),
                _ => return Err(StreamingError::Spdy("headers cannot be decompressed")),
            }
        }
    }
}

fn parse(block: &[u8]) -> Result<SpdyHeaders, StreamingError> {
    let mut rest = block;
    let count = number(&mut rest)?;
    if count > MAX_HEADERS {
        return Err(StreamingError::Spdy("there are too many headers"));
    }
    let mut headers = SpdyHeaders::with_capacity(count);
    for _ in 0..count {
        let (name, value) = (text(&mut rest)?, text(&mut rest)?);
        headers.push((name, value));
    }
    if rest.is_empty() {
        Ok(headers)
    } else {
        Err(StreamingError::Spdy("bytes follow the headers"))
    }
}

fn number(rest: &mut &[u8]) -> Result<usize, StreamingError> {
    let cut = StreamingError::Spdy("headers are cut off");
    let (bytes, after) = rest.split_first_chunk::<4>().ok_or_else(|| cut.clone())?;
    *rest = after;
    usize::try_from(u32::from_be_bytes(*bytes)).map_err(|_| cut)
}

fn text(rest: &mut &[u8]) -> Result<String, StreamingError> {
    let length = number(rest)?;
    let (bytes, after) =
        rest.split_at_checked(length).ok_or(StreamingError::Spdy("headers are cut off"))?;
    *rest = after;
    String::from_utf8(bytes.to_vec()).map_err(|_| StreamingError::Spdy("a header is not text"))
}

/// Writes the blocks of one direction, in blocks of deflate that are only stored: headers of streams are short, and the other end
/// decompresses them like any.
#[derive(Debug, Default)]
pub(super) struct HeaderDeflater {
    has_head: bool,
}

impl HeaderDeflater {
    pub(super) fn write(&mut self, headers: &[(String, String)], out: &mut Vec<u8>) {
        if !self.has_head {
            out.extend(ZLIB_HEAD);
            out.extend(dictionary::ADLER32);
            self.has_head = true;
        }
        let mut block = Vec::new();
        push_number(headers.len(), &mut block);
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            push_number(text.len(), &mut block);
            block.extend_from_slice(text.as_bytes());
        }
        for part in block.chunks(MAX_STORED_BYTES) {
            push_stored(part, out);
        }
        // An empty block makes the other end pass on what came before.
        push_stored(&[], out);
    }
}

fn push_number(number: usize, out: &mut Vec<u8>) {
    out.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

fn push_stored(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.push(0);
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend_from_slice(bytes);
}
