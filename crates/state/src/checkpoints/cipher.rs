//! AES-256-GCM over a checkpoint and its name, with a new nonce each time.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use super::OURS;
use crate::error::{FileError, failed};
use crate::files::replace;

const KEY_BYTES: usize = 32;

/// Encrypts and decrypts checkpoints.
pub(super) struct CheckpointCipher {
    key: LessSafeKey,
    random: SystemRandom,
}

/// Why a checkpoint could not be encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CipherError {
    #[error("the system gives no random numbers")]
    NoRandomness,
    #[error("it was changed, cut off, or sealed with another key")]
    Broken,
}

impl fmt::Debug for CheckpointCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl CheckpointCipher {
    /// Reads the key from that file; creates one if there is none.
    pub(super) fn of_file(path: &Path) -> Result<Self, FileError> {
        let random = SystemRandom::new();
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut bytes = vec![0; KEY_BYTES];
                random
                    .fill(&mut bytes)
                    .map_err(|_| failed("make", path)(CipherError::NoRandomness))?;
                replace(path, &bytes, OURS, true).map_err(failed("write", path))?;
                bytes
            }
            Err(error) => return Err(failed("read", path)(error)),
        };
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| {
            let why = "it is not a key of 32 bytes; remove it, and what was kept is forgotten";
            failed("use", path)(why)
        })?;
        Ok(Self { key: LessSafeKey::new(key), random })
    }

    pub(super) fn encrypt(&self, name: &str, mut content: Vec<u8>) -> Result<Vec<u8>, CipherError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| CipherError::NoRandomness)?;
        let tag = self
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name.as_bytes()),
                &mut content,
            )
            .map_err(|_| CipherError::Broken)?;
        Ok([&nonce, content.as_slice(), tag.as_ref()].concat())
    }

    pub(super) fn decrypt(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (nonce, body) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(CipherError::Broken)?;
        let (nonce, mut body) = (Nonce::assume_unique_for_key(*nonce), body.to_vec());
        let opened = self.key.open_in_place(nonce, Aad::from(name.as_bytes()), &mut body);
        opened.map(|content| content.to_vec()).map_err(|_| CipherError::Broken)
    }
}
