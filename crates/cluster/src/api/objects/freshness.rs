//! How ConfigMaps and Secrets are kept up to date.

/// The ways there are, as `configMapAndSecretChangeDetectionStrategy` names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// Each is watched for as long as a pod refers to it; one that says it never changes is only read.
    #[default]
    Watch,
    /// Each is read once a minute.
    Cache,
    /// Each is read once a minute, and whenever a pod looks.
    Get,
}
