//! Tokens of service accounts: which ones a pod wants, and when one is replaced by a newer one.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, ServiceAccountTokenProjection, Volume};

use crate::pod::PodExt;

/// What a pod that names no account acts as.
const DEFAULT_ACCOUNT: &str = "default";
/// The lifetime of a token in seconds if the pod does not set one.
const USUAL_LIFETIME: i64 = 3600;
/// No token is used for longer, however long it would be good for.
const OLDEST: Duration = Duration::from_secs(24 * 60 * 60);
/// A newer one is not asked for sooner, whatever lifetime the answer names: an API server gives out none below ten minutes.
const SHORTEST: Duration = Duration::from_secs(10);
/// Tokens that were asked for together are not replaced together: each goes this much earlier at most.
const EARLIER: Duration = Duration::from_secs(10);

/// A token that a pod wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenRequestKey {
    /// Whom it is shown to; empty for the API server.
    pub audience: String,
    /// How many seconds it should be good for.
    pub seconds: i64,
}

impl TokenRequestKey {
    /// A token of the usual lifetime.
    pub fn for_audience(audience: &str) -> Self {
        Self { audience: audience.to_owned(), seconds: USUAL_LIFETIME }
    }
}

impl From<&ServiceAccountTokenProjection> for TokenRequestKey {
    fn from(wanted: &ServiceAccountTokenProjection) -> Self {
        Self {
            audience: wanted.audience.clone().unwrap_or_default(),
            seconds: wanted.expiration_seconds.unwrap_or(USUAL_LIFETIME),
        }
    }
}

/// The account that a pod acts as.
pub fn service_account_name(pod: &Pod) -> &str {
    let named = pod.spec().and_then(|spec| spec.service_account_name.as_deref());
    named.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_ACCOUNT)
}

/// The tokens that a pod has in its volumes, as far as a container mounts them.
pub fn token_requests(pod: &Pod) -> BTreeSet<TokenRequestKey> {
    let mounted = pod.mounted_volumes();
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let used = volumes.iter().filter(|volume| mounted.contains(&volume.name));
    used.flat_map(of_volume).map(TokenRequestKey::from).collect()
}

fn of_volume(volume: &Volume) -> impl Iterator<Item = &ServiceAccountTokenProjection> {
    let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    sources.filter_map(|source| source.service_account_token.as_ref())
}

/// How long a token is used before a newer one is asked for: for four fifths of its life, for a day at most, and less a random
/// part, so that tokens are not all replaced together.
pub fn refresh_after(lifetime: Duration, jitter: u64) -> Duration {
    let earlier = Duration::from_millis(jitter % (millis(EARLIER) + 1));
    let most = (lifetime / 5).saturating_mul(4).min(OLDEST);
    most.saturating_sub(earlier).max(SHORTEST)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX - 1)
}
