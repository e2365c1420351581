//! Authorization of requests: all are allowed, or the API server decides (SubjectAccessReview).

use std::sync::Arc;

use oarsman_cluster::review::{Reviewer, User};
use oarsman_core::access::Attributes;
use tokio::time::Instant;

use crate::AuthorizationSettings;
use crate::ttl_cache::TtlCache;

/// The decision on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    /// The request is allowed.
    Allowed,
    /// The request is denied.
    Denied,
    /// There is no decision, with the error.
    Unknown(String),
}

/// A user, a verb, and a subresource of the node.
type AccessQuery = (User, &'static str, &'static str);

/// Decides which requests are allowed.
pub(crate) struct Authorizer {
    authorization: AuthorizationSettings,
    decisions: TtlCache<AccessQuery, bool>,
    reviewer: Option<Arc<dyn Reviewer>>,
}

impl Authorizer {
    pub(crate) fn new(
        authorization: AuthorizationSettings,
        reviewer: Option<Arc<dyn Reviewer>>,
    ) -> Self {
        Self { authorization, decisions: TtlCache::new(), reviewer }
    }

    /// Whether the user is allowed to do this by any one of the subresources that are enough for it.
    pub(crate) async fn authorize(&self, user: &User, wanted: &Attributes) -> AccessDecision {
        let AuthorizationSettings::Webhook { allowed, denied } = self.authorization else {
            return AccessDecision::Allowed;
        };
        let Some(reviewer) = &self.reviewer else {
            return AccessDecision::Unknown("there is no API server to ask".to_owned());
        };
        for subresource in &wanted.subresources {
            let question = (user.clone(), wanted.verb, *subresource);
            let may = match self.decisions.get(&question, Instant::now()) {
                Some(known) => known,
                None => match reviewer.review_access(user, wanted.verb, subresource).await {
                    Ok(may) => {
                        let time = if may { allowed } else { denied };
                        self.decisions.insert(question, may, Instant::now(), time);
                        may
                    }
                    Err(error) => return AccessDecision::Unknown(error.to_string()),
                },
            };
            if may {
                return AccessDecision::Allowed;
            }
        }
        AccessDecision::Denied
    }
}
