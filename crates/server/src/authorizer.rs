//! Authorization of requests: all are allowed, or the API server decides (SubjectAccessReview).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use oarsman_cluster::review::{Reviewer, User};
use oarsman_core::access::Attributes;
use tokio::time::Instant;

use crate::AuthorizationSettings;
use crate::review_throttle::ReviewThrottle;
use crate::ttl_cache::TtlCache;

/// How long nothing is asked again that the API server could not be asked.
const AFTER_A_FAILED_REVIEW: Duration = Duration::from_secs(5);

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    /// The request is allowed.
    Allowed,
    /// The request is denied.
    Denied,
    /// The API server would have to be asked too often.
    Throttled,
    /// No authorizer could decide: why.
    Unknown(String),
}

/// A user, a verb, and a subresource of the node.
type AccessQuery = (User, &'static str, &'static str);

/// Decides which requests are allowed.
pub(crate) struct Authorizer {
    authorization: AuthorizationSettings,
    decisions: TtlCache<AccessQuery, bool>,
    /// Questions that the API server could not be asked.
    failures: TtlCache<AccessQuery, String>,
    throttle: ReviewThrottle,
    reviewer: Option<Arc<dyn Reviewer>>,
}

impl Authorizer {
    pub(crate) fn new(
        authorization: AuthorizationSettings,
        reviewer: Option<Arc<dyn Reviewer>>,
    ) -> Self {
        let (decisions, failures) = (TtlCache::new(), TtlCache::new());
        let throttle = ReviewThrottle::default();
        Self { authorization, decisions, failures, throttle, reviewer }
    }

    /// Whether the user may do one of these; the first that is allowed counts.
    pub(crate) async fn authorize(
        &self,
        user: &User,
        wanted: &Attributes,
        client: IpAddr,
    ) -> AccessDecision {
        if matches!(self.authorization, AuthorizationSettings::AlwaysAllow) {
            return AccessDecision::Allowed;
        }
        let Some(reviewer) = &self.reviewer else {
            return AccessDecision::Unknown("there is no API server to ask".to_owned());
        };
        for subresource in &wanted.subresources {
            let question = (user.clone(), wanted.verb, *subresource);
            let known = self.decisions.get(&question, Instant::now());
            let may = match known {
                Some(known) => known,
                None => match self.review(reviewer.as_ref(), question, client).await {
                    Ok(may) => may,
                    Err(decision) => return decision,
                },
            };
            if may {
                return AccessDecision::Allowed;
            }
        }
        AccessDecision::Denied
    }

    async fn review(
        &self,
        reviewer: &dyn Reviewer,
        question: AccessQuery,
        client: IpAddr,
    ) -> Result<bool, AccessDecision> {
        if let Some(failure) = self.failures.get(&question, Instant::now()) {
            return Err(AccessDecision::Unknown(failure));
        }
        if !self.throttle.admit(client, Instant::now()) {
            return Err(AccessDecision::Throttled);
        }
        let (user, verb, subresource) = &question;
        match reviewer.review_access(user, verb, subresource).await {
            Ok(may) => {
                if may {
                    self.throttle.confirm(client, Instant::now());
                }
                let time = self.cache_time(may);
                self.decisions.insert(question, may, Instant::now(), time);
                Ok(may)
            }
            Err(error) => {
                tracing::warn!(
                    client = user.name,
                    call = "SubjectAccessReview",
                    %error,
                    "authorization check failed, request refused"
                );
                let (now, time) = (Instant::now(), AFTER_A_FAILED_REVIEW);
                self.failures.insert(question, error.to_string(), now, time);
                Err(AccessDecision::Unknown(error.to_string()))
            }
        }
    }

    fn cache_time(&self, may: bool) -> Duration {
        match self.authorization {
            AuthorizationSettings::Webhook { allowed, .. } if may => allowed,
            AuthorizationSettings::Webhook { denied, .. } => denied,
            AuthorizationSettings::AlwaysAllow => Duration::ZERO,
        }
    }
}
