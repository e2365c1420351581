//! AES-256-GCM over a checkpoint and its name, with a new nonce each time.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use super::keys::KeyBytes;

/// Encrypts and decrypts checkpoints.
pub(super) struct CheckpointCipher {
    keys: Vec<LessSafeKey>,
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
    /// The first key closes, and any of them opens.
    pub(super) fn new(keys: &[KeyBytes]) -> Result<Self, CipherError> {
        let key = |bytes: &KeyBytes| UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new);
        let keys: Result<Vec<LessSafeKey>, _> = keys.iter().map(key).collect();
        Ok(Self { keys: keys.map_err(|_| CipherError::Broken)?, random: SystemRandom::new() })
    }

    pub(super) fn encrypt(&self, name: &str, mut content: Vec<u8>) -> Result<Vec<u8>, CipherError> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| CipherError::NoRandomness)?;
        let key = self.keys.first().ok_or(CipherError::Broken)?;
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(name.as_bytes()),
                &mut content,
            )
            .map_err(|_| CipherError::Broken)?;
        content.extend_from_slice(tag.as_ref());
        content.splice(..0, nonce);
        Ok(content)
    }

    pub(super) fn decrypt(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, CipherError> {
        let (nonce, body) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(CipherError::Broken)?;
        let opened = self.keys.iter().find_map(|key| {
            let (nonce, mut body) = (Nonce::assume_unique_for_key(*nonce), body.to_vec());
            key.open_in_place(nonce, Aad::from(name.as_bytes()), &mut body)
                .ok()
                .map(|content| content.to_vec())
        });
        opened.ok_or(CipherError::Broken)
    }
}
