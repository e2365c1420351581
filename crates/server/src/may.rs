//! What somebody may: everything, or what the API server allows.

use std::sync::Arc;

use oarsman_cluster::review::{Reviewer, User};
use oarsman_core::access::Attributes;
use tokio::time::Instant;

use crate::Authorization;
use crate::cache::Cache;

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// They may.
    Allowed,
    /// They may not.
    Denied,
    /// Nobody knows: why.
    Unknown(String),
}

/// Somebody, a verb, and a part of the node.
type Question = (User, &'static str, &'static str);

/// Finds out what somebody may.
pub(crate) struct May {
    authorization: Authorization,
    known: Cache<Question, bool>,
    reviewer: Option<Arc<dyn Reviewer>>,
}

impl May {
    pub(crate) fn new(authorization: Authorization, reviewer: Option<Arc<dyn Reviewer>>) -> Self {
        Self { authorization, known: Cache::new(), reviewer }
    }

    /// Whether somebody may, by any of the parts that will do.
    pub(crate) async fn ask(&self, user: &User, wanted: &Attributes) -> Verdict {
        let Authorization::Ask { allowed, denied } = self.authorization else {
            return Verdict::Allowed;
        };
        let Some(reviewer) = &self.reviewer else {
            return Verdict::Unknown("there is no API server to ask".to_owned());
        };
        for subresource in &wanted.subresources {
            let question = (user.clone(), wanted.verb, *subresource);
            let may = match self.known.get(&question, Instant::now()) {
                Some(known) => known,
                None => match reviewer.may(user, wanted.verb, subresource).await {
                    Ok(may) => {
                        let time = if may { allowed } else { denied };
                        self.known.keep(question, may, Instant::now(), time);
                        may
                    }
                    Err(error) => return Verdict::Unknown(error.to_string()),
                },
            };
            if may {
                return Verdict::Allowed;
            }
        }
        Verdict::Denied
    }
}
