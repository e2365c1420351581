//! Answers that still count.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{CredentialProvider, CredentialProviderResponse};
use crate::image::keyring::Keyring;
use crate::image_reference::repository_name;
use crate::time::Mono;

/// What an answer is good for besides the image that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Coverage {
    /// The answer is for this image only.
    Image,
    /// All images of its registry.
    Registry,
    /// The answer is for all images.
    Global,
}

/// Answers of all programs.
#[derive(Clone, Debug, Default)]
pub struct ProviderCache {
    answers: BTreeMap<(String, Coverage, String), (Keyring, Mono)>,
}

impl ProviderCache {
    /// What a program has answered that counts for an image.
    pub fn find(&self, provider: &CredentialProvider, image: &str, now: Mono) -> Option<&Keyring> {
        let coverages = [Coverage::Image, Coverage::Registry, Coverage::Global];
        let answers = coverages.into_iter().filter_map(|coverage| {
            self.answers.get(&key(provider, coverage, image)).filter(|(_, until)| now < *until)
        });
        answers.map(|(keyring, _)| keyring).next()
    }

    /// Keeps an answer for as long as it counts, and forgets those that do no longer.
    pub fn keep(
        &mut self,
        provider: &CredentialProvider,
        image: &str,
        answer: &CredentialProviderResponse,
        now: Mono,
    ) {
        self.answers.retain(|_, (_, until)| now < *until);
        if !answer.counts.is_zero() {
            let kept = (answer.keyring.clone(), now + answer.counts);
            self.answers.insert(key(provider, answer.coverage, image), kept);
        }
    }
}

fn key(
    provider: &CredentialProvider,
    coverage: Coverage,
    image: &str,
) -> (String, Coverage, String) {
    let repository = repository_name(image);
    let subject = match coverage {
        Coverage::Image => repository,
        Coverage::Registry => repository.split('/').next().unwrap_or_default().to_owned(),
        Coverage::Global => String::new(),
    };
    (provider.name.clone(), coverage, subject)
}
