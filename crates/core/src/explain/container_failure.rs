//! What the runtime, or we before it, refuse to do for one container, in many words.

use super::Explanation;
use super::cause::ExplanationCause;
use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::root_message::root_message;

/// A refusal, and the container it is about.
pub(super) struct ContainerFailure<'a> {
    pub(super) context: &'a ExplainContext<'a>,
    pub(super) seen: &'a ContainerSnapshot<'a>,
    /// All that was said.
    pub(super) message: &'a str,
    /// What matters of it.
    pub(super) why: String,
    /// How the sentence ends: how often, and when again.
    tail: String,
}

impl<'a> ContainerFailure<'a> {
    pub(super) fn new(
        context: &'a ExplainContext<'a>,
        seen: &'a ContainerSnapshot<'a>,
        message: &'a str,
        tail: String,
    ) -> Self {
        Self { context, seen, message, why: root_message(message), tail }
    }

    /// Whether one of these words was said.
    pub(super) fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|word| self.message.contains(word))
    }

    pub(super) fn label(&self) -> String {
        self.seen.label()
    }

    /// The explanation: a sentence that the tail ends, and what to do.
    pub(super) fn explain(
        &self,
        cause: ExplanationCause,
        sentence: &str,
        next_step: String,
    ) -> Explanation {
        let sentence = format!("{sentence}{}.", self.tail);
        let whole = (self.why != self.message).then(|| self.message.trim().to_owned());
        Explanation::new(cause, sentence, next_step).with(whole)
    }

    /// The same, where the next step is to correct a field of the container.
    pub(super) fn correct(
        &self,
        cause: ExplanationCause,
        sentence: &str,
        field: &str,
    ) -> Explanation {
        let next =
            format!("Correct {} in {}.", self.seen.field(field), self.context.manifest_path());
        self.explain(cause, sentence, next)
    }

    /// The same for an error that matches no known cause: the runtime's message is quoted.
    pub(super) fn quote(&self, cause: ExplanationCause, doing: &str) -> Explanation {
        let sentence = format!("The runtime cannot {doing} {}: {}", self.label(), self.why);
        let next =
            format!("Follow what the runtime says; all of it is in {}.", self.context.describe());
        self.explain(cause, &sentence, next)
    }
}
