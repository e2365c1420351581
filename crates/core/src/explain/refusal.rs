//! What the runtime, or we before it, refuse to do for one container, in many words.

use super::Explanation;
use super::case::Case;
use super::cause::Cause;
use super::essence::essence;
use super::seen::Seen;

/// A refusal, and whom it is about.
pub(super) struct Refusal<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) seen: &'a Seen<'a>,
    /// All that was said.
    pub(super) message: &'a str,
    /// What matters of it.
    pub(super) why: String,
    /// How the sentence ends: how often, and when again.
    tail: String,
}

impl<'a> Refusal<'a> {
    pub(super) fn new(
        case: &'a Case<'a>,
        seen: &'a Seen<'a>,
        message: &'a str,
        tail: String,
    ) -> Self {
        Self { case, seen, message, why: essence(message), tail }
    }

    /// Whether one of these words was said.
    pub(super) fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.message.contains(word))
    }

    pub(super) fn who(&self) -> String {
        self.seen.who()
    }

    /// The explanation: a sentence that the tail ends, and what to do.
    pub(super) fn explain(&self, cause: Cause, sentence: &str, next_step: String) -> Explanation {
        let sentence = format!("{sentence}{}.", self.tail);
        let whole = (self.why != self.message).then(|| self.message.trim().to_owned());
        Explanation::new(cause, sentence, next_step).with(whole)
    }

    /// The same, where the next step is to correct a field of the container.
    pub(super) fn correct(&self, cause: Cause, sentence: &str, field: &str) -> Explanation {
        let next = format!("Correct {} in {}.", self.seen.field(field), self.case.place());
        self.explain(cause, sentence, next)
    }

    /// The same for an error that matches no known cause: the runtime's message is quoted.
    pub(super) fn quote(&self, cause: Cause, doing: &str) -> Explanation {
        let sentence = format!("The runtime cannot {doing} {}: {}", self.who(), self.why);
        let next =
            format!("Follow what the runtime says; all of it is in {}.", self.case.describe());
        self.explain(cause, &sentence, next)
    }
}
