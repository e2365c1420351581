//! What a source has to say, as data: where it was found, and one sentence.

use oarsman_core::report::BrokenManifest;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// Only to those who look for it.
    Detail,
    /// Good to know.
    News,
    /// Somebody should look.
    Warning,
    /// Somebody has to do something.
    Error,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) weight: Weight,
    /// The file or URL.
    pub(super) place: String,
    pub(super) said: String,
    /// What people are told of it until it is mended.
    pub(super) broken: Option<BrokenManifest>,
}

impl Line {
    pub(super) fn new(weight: Weight, place: &str, said: impl Into<String>) -> Self {
        Self { weight, place: place.to_owned(), said: said.into(), broken: None }
    }

    /// Something is wrong with a manifest, whose pod goes on if there was one.
    pub(super) fn broken(place: &str, why: &str, kept: bool) -> Self {
        let fate = if kept { "the pod it held before goes on" } else { "no pod comes of it" };
        let broken = BrokenManifest { place: place.to_owned(), why: why.to_owned(), goes_on: kept };
        let line = Self::new(Weight::Error, place, format!("{why} ({fate})"));
        Self { broken: Some(broken), ..line }
    }

    /// Writes it to the log.
    pub(super) fn log(&self) {
        let Self { weight, place, said, .. } = self;
        match weight {
            Weight::Detail => tracing::debug!(%place, "{said}"),
            Weight::News => tracing::info!(%place, "{said}"),
            Weight::Warning => tracing::warn!(%place, "{said}"),
            Weight::Error => tracing::error!(%place, "{said}"),
        }
    }
}
