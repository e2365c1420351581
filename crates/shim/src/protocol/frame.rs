//! Frames: four bytes of length, most significant first, then JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame that is sent or taken. A spec with a thousand mounts has some 200 KiB.
pub(crate) const MOST_FRAME: usize = 4 << 20;
const LENGTH: usize = 4;

/// Why bytes are not a frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than allowed.
    #[error("a frame of {0} bytes is longer than {MOST_FRAME}")]
    TooLong(usize),
    /// Not what was expected.
    #[error("a frame is not understood: {0}")]
    Json(#[from] serde_json::Error),
}

/// A message as bytes.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; LENGTH];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - LENGTH;
    let prefix = u32::try_from(length).ok().filter(|_| length <= MOST_FRAME);
    let prefix = prefix.ok_or(FrameError::TooLong(length))?;
    bytes.splice(..LENGTH, prefix.to_be_bytes());
    Ok(bytes)
}

/// Takes the first frame off the bytes that have come in so far; none if it is not complete.
pub(crate) fn take<T: DeserializeOwned>(received: &mut Vec<u8>) -> Result<Option<T>, FrameError> {
    let Some(prefix) = received.first_chunk::<LENGTH>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
    if length > MOST_FRAME {
        return Err(FrameError::TooLong(length));
    }
    let Some(json) = received.get(LENGTH..LENGTH + length) else {
        return Ok(None);
    };
    let message = serde_json::from_slice(json);
    received.drain(..LENGTH + length);
    Ok(Some(message?))
}

/// All messages of bytes that come in pieces, up to the first that is none, for fuzzing.
pub(super) fn take_all(pieces: &[&[u8]]) -> Vec<serde_json::Value> {
    let (mut received, mut all) = (Vec::new(), Vec::new());
    for piece in pieces {
        received.extend_from_slice(piece);
        loop {
            match take(&mut received) {
                Ok(Some(message)) => all.push(message),
                Ok(None) => break,
                Err(_) => return all,
            }
        }
    }
    all
}
