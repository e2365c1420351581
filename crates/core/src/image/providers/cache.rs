//! Answers that still count.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{CredentialProvider, CredentialProviderResponse, ShownServiceAccount};
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
    answers: BTreeMap<AnswerKey, (Keyring, Mono)>,
}

/// What an answer counts for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AnswerKey {
    provider: String,
    coverage: Coverage,
    /// The repository, or the registry.
    subject: String,
    /// Whose it is; empty for the node's.
    account: String,
}

/// What a provider is asked about.
#[derive(Clone, Copy, Debug)]
pub struct ProviderQuestion<'a> {
    /// The provider.
    pub provider: &'a CredentialProvider,
    /// The image that is to be pulled.
    pub image: &'a str,
    /// The service account whose token it is shown.
    pub account: Option<&'a ShownServiceAccount>,
}

impl ProviderCache {
    /// What a program has answered that counts for a question.
    pub fn find(&self, question: ProviderQuestion<'_>, now: Mono) -> Option<&Keyring> {
        let coverages = [Coverage::Image, Coverage::Registry, Coverage::Global];
        let answers = coverages.into_iter().filter_map(|coverage| {
            self.answers.get(&key(question, coverage)).filter(|(_, until)| now < *until)
        });
        answers.map(|(keyring, _)| keyring).next()
    }

    /// Keeps an answer for as long as it counts, and forgets those that do no longer.
    pub fn keep(
        &mut self,
        question: ProviderQuestion<'_>,
        answer: &CredentialProviderResponse,
        now: Mono,
    ) {
        self.answers.retain(|_, (_, until)| now < *until);
        if !answer.counts.is_zero() {
            let kept = (answer.keyring.clone(), now + answer.counts);
            self.answers.insert(key(question, answer.coverage), kept);
        }
    }
}

fn key(question: ProviderQuestion<'_>, coverage: Coverage) -> AnswerKey {
    let ProviderQuestion { provider, image, account } = question;
    let repository = repository_name(image);
    let subject = match coverage {
        Coverage::Image => repository,
        Coverage::Registry => repository.split('/').next().unwrap_or_default().to_owned(),
        Coverage::Global => String::new(),
    };
    let cache_type = provider.token_attributes.as_ref().map(|attributes| attributes.cache_type);
    let account = account.zip(cache_type).map(|(account, kind)| account.cache_key(kind));
    let (provider, account) = (provider.name.clone(), account.unwrap_or_default());
    AnswerKey { provider, coverage, subject, account }
}
