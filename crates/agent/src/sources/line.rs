//! Messages of a source as data: the place and one sentence.

use std::fmt;

use oarsman_core::report::BrokenManifest;

/// The log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// For debugging.
    Detail,
    /// A change of state.
    News,
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
pub(super) struct Line {
    pub(super) weight: Weight,
    pub(super) subject: LineSubject,
    /// The file or URL.
    pub(super) place: String,
    pub(super) said: String,
    /// What happens to the previous objects; added to the sentence while pods run.
    pub(super) fate: &'static str,
    /// The entry in the node report, until the manifest is fixed.
    pub(super) broken: Option<BrokenManifest>,
}

impl Line {
    /// A line about a source as a whole.
    pub(super) fn new(weight: Weight, place: &str, said: impl Into<String>) -> Self {
        let (place, said, subject) = (place.to_owned(), said.into(), LineSubject::Source);
        Self { weight, subject, place, said, fate: "", broken: None }
    }

    /// A line about the content of a manifest.
    pub(super) fn of_manifest(weight: Weight, place: &str, said: impl Into<String>) -> Self {
        Self { subject: LineSubject::Manifest, ..Self::new(weight, place, said) }
    }

    /// A manifest is invalid; its previous objects are kept, if there were any.
    pub(super) fn broken(remark: &Remark, kept: bool) -> Self {
        let fate = if kept { " (what it held before goes on)" } else { " (nothing comes of it)" };
        let line = Self::of_manifest(Weight::Error, &remark.place, &remark.why);
        Self { fate, broken: Some(remark.broken(kept)), ..line }
    }

    /// Writes it to the log.
    pub(super) fn log(&self) {
        let (source, error) = (&self.place, self);
        match (self.weight, self.subject) {
            (Weight::Detail, _) => {
                tracing::debug!(source, %error, "manifest source not usable, will retry");
            }
            (Weight::News, _) => tracing::info!(source, detail = %self, "manifest source changed"),
            (Weight::Warning | Weight::Error, LineSubject::Source) => {
                tracing::warn!(source, %error, "manifest source not usable, will retry");
            }
            (Weight::Warning, LineSubject::Manifest) => {
                tracing::warn!(source, %error, "manifest has unknown fields, they are ignored");
            }
            (Weight::Error, LineSubject::Manifest) => {
                tracing::error!(source, %error, "manifest rejected");
            }
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.said, self.fate)
    }
}

/// A problem with a manifest, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The file or URL, as it was given, and which document of it.
    pub place: String,
    /// What is wrong there, and what to do about it.
    pub why: String,
}

impl Remark {
    pub(super) fn new(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self { place: place.into(), why: why.into() }
    }

    /// The entry in the node report: `goes_on` tells whether the previous objects are kept.
    pub(super) fn broken(&self, goes_on: bool) -> BrokenManifest {
        BrokenManifest { place: self.place.clone(), why: self.why.clone(), goes_on }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}
