//! Decompresses layers, and archives as a whole, by what their first bytes are: media types are not always right.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What follows the first byte, 0x50 to 0x5f, of a frame of zstd that decoders skip.
const ZSTD_SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];
/// What other programs compress with, and images do not.
const OTHERS: [(&[u8], &str); 3] = [
    (b"BZh", "bzip2"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "xz"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
];
const BUFFER: usize = 64 << 10;

/// How bytes are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// By the first bytes, at least six where there are as many.
    pub(crate) fn of(start: &[u8]) -> io::Result<Self> {
        if let Some((_, name)) = OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
            let why = format!("it is compressed with {name}; images use gzip, zstd or nothing");
            return Err(io::Error::other(why));
        }
        Ok(match start {
            _ if start.starts_with(&GZIP) => Self::Gzip,
            _ if start.starts_with(&ZSTD) || is_skipped_frame(start) => Self::Zstd,
            _ => Self::None,
        })
    }
}

fn is_skipped_frame(start: &[u8]) -> bool {
    start.first().is_some_and(|byte| byte & 0xf0 == 0x50) && start[1..].starts_with(&ZSTD_SKIPPED)
}

/// The bytes before they were compressed.
pub(crate) fn decompress<'a>(from: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let (start, from) = peek(from)?;
    let compression = Compression::of(&start)?;
    let from = BufReader::with_capacity(BUFFER, io::Cursor::new(start).chain(from));
    Ok(match compression {
        Compression::None => Box::new(from),
        Compression::Gzip => Box::new(MultiGzDecoder::new(from)),
        Compression::Zstd => Box::new(ZstdReader::new(from)),
    })
}

/// The first bytes, and the reader of what follows them.
fn peek<R: Read>(mut from: R) -> io::Result<(Vec<u8>, R)> {
    let mut start = Vec::new();
    (&mut from).take(6).read_to_end(&mut start)?;
    Ok((start, from))
}

/// Any number of frames; those to be skipped are. Windows beyond 128 MiB are refused, which `zstd --ultra` does not need.
struct ZstdReader<R> {
    inner: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> ZstdReader<R> {
    fn new(inner: R) -> Self {
        Self { inner, decoder: FrameDecoder::new(), is_in_frame: false }
    }

    /// False at the end of the last frame.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.inner.fill_buf()?.is_empty() {
            let skipped = match self.decoder.reset(&mut self.inner) {
                Ok(()) => {
                    self.is_in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => u64::from(length),
                Err(error) => return Err(io::Error::other(error)),
            };
            let read = io::copy(&mut (&mut self.inner).take(skipped), &mut io::sink())?;
            if read < skipped {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(false)
    }

    fn check_sum(&self) -> io::Result<()> {
        let computed = self.decoder.get_calculated_checksum();
        match self.decoder.get_checksum_from_data() {
            Some(stored) if computed != Some(stored) => {
                Err(io::Error::other("the checksum of a zstd frame is wrong"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame && !self.begin_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.inner, one).map_err(io::Error::other)?;
            }
            let read = self.decoder.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            self.check_sum()?;
            self.is_in_frame = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        decompress(bytes)?.read_to_end(&mut plain)?;
        Ok(plain)
    }

    #[test]
    fn what_was_compressed_in_several_parts_is_read_whole() {
        let (a, b) = (b"first ".repeat(50_000), b"second".repeat(7));
        let skipped = [&[0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        let rows = [
            ("plain", [a.clone(), b.clone()].concat()),
            ("gzip", [gzip(&a), gzip(&b)].concat()),
            ("zstd", [zstd(&a), skipped.clone(), zstd(&b)].concat()),
            ("zstd, skipped first", [skipped, zstd(&a), zstd(&b)].concat()),
        ];
        for (name, bytes) in rows {
            assert!(read(&bytes).unwrap() == [a.clone(), b.clone()].concat(), "{name}");
        }
        assert_eq!(read(b"").unwrap(), b"");
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_an_error() {
        for whole in [gzip(&b"text".repeat(1000)), zstd(&b"text".repeat(1000))] {
            for length in 7..whole.len() {
                assert!(read(&whole[..length]).is_err(), "{length} of {}", whole.len());
            }
        }
        let error = read(b"BZh91AY").unwrap_err();
        assert!(error.to_string().contains("bzip2"), "{error}");
    }
}
