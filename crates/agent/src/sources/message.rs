//! Messages of a source as data: the place and one sentence.

use std::fmt;

use oarsman_core::report::BrokenManifest;

/// The log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageLevel {
    /// For debugging.
    Debug,
    /// A change of state.
    Info,
    /// A probable mistake that has no effect on pods.
    Warning,
    /// A manifest or place that cannot be used until it is fixed.
    Error,
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineSubject {
    /// The content of a manifest, which a person has to correct.
    Manifest,
    /// The file, directory or URL as a whole, which is read again by itself.
    Source,
}

/// A message for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ManifestMessage {
    pub(super) level: MessageLevel,
    pub(super) subject: LineSubject,
    /// The file or URL.
    pub(super) place: String,
    pub(super) summary: String,
    /// What happens to the previous objects; added to the sentence while pods run.
    pub(super) fate: &'static str,
    /// The entry in the node report, until the manifest is fixed.
    pub(super) broken: Option<BrokenManifest>,
}

impl ManifestMessage {
    /// A line about a source as a whole.
    pub(super) fn new(level: MessageLevel, place: &str, summary: impl Into<String>) -> Self {
        let (place, summary, subject) = (place.to_owned(), summary.into(), LineSubject::Source);
        Self { level, subject, place, summary, fate: "", broken: None }
    }

    /// A line about the content of a manifest.
    pub(super) fn of_manifest(
        level: MessageLevel,
        place: &str,
        summary: impl Into<String>,
    ) -> Self {
        Self { subject: LineSubject::Manifest, ..Self::new(level, place, summary) }
    }

    /// A manifest is invalid; its previous objects are kept, if there were any.
    pub(super) fn broken(problem: &ManifestProblem, kept: bool) -> Self {
        let fate = if kept { " (what it held before goes on)" } else { " (nothing comes of it)" };
        let message = Self::of_manifest(MessageLevel::Error, &problem.place, &problem.why);
        Self { fate, broken: Some(problem.broken(kept)), ..message }
    }

    /// Writes it to the log.
    pub(super) fn log(&self) {
        let (source, error) = (&self.place, self);
        match (self.level, self.subject) {
            (MessageLevel::Debug, _) => {
                tracing::debug!(source, %error, "manifest source not usable, will retry");
            }
            (MessageLevel::Info, _) => {
                tracing::info!(source, detail = %self, "manifest source changed");
            }
            (MessageLevel::Warning | MessageLevel::Error, LineSubject::Source) => {
                tracing::warn!(source, %error, "manifest source not usable, will retry");
            }
            (MessageLevel::Warning, LineSubject::Manifest) => {
                tracing::warn!(source, %error, "manifest has unknown fields, they are ignored");
            }
            (MessageLevel::Error, LineSubject::Manifest) => {
                tracing::error!(source, %error, "manifest rejected");
            }
        }
    }
}

impl fmt::Display for ManifestMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.summary, self.fate)
    }
}

/// A problem with a manifest, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestProblem {
    /// The file or URL, as it was given, and which document of it.
    pub place: String,
    /// What is wrong there, and what to do about it.
    pub why: String,
}

impl ManifestProblem {
    pub(super) fn new(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self { place: place.into(), why: why.into() }
    }

    /// The entry in the node report: `goes_on` tells whether the previous objects are kept.
    pub(super) fn broken(&self, goes_on: bool) -> BrokenManifest {
        BrokenManifest { place: self.place.clone(), why: self.why.clone(), goes_on }
    }
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}
