//! How many long answers are sent at once, of one user and in all.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use oarsman_sync::Guarded;

use super::EndpointState;
use crate::auth_filter::ClientUser;

/// Lists, statistics and metrics that are sent at once. A list holds one pod, which may have several MiB; the others have all of their text.
const MAX_LISTS: usize = 32;
/// Of these, to one user: a client that takes nothing of its answers keeps no other user from being served.
const MAX_LISTS_OF_A_USER: usize = MAX_LISTS / 4;

/// The limit of one server: clients that need no authentication cannot use up that of others.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListLimit(Arc<Guarded<ListCounts>>);

/// How many are sent to each user; those of the read-only port are to none.
type ListCounts = BTreeMap<Option<ClientUser>, usize>;

/// The right to send one answer, held until the client has taken it or is gone.
#[derive(Debug)]
pub(super) struct ListPermit {
    limit: ListLimit,
    user: Option<ClientUser>,
}

/// There are too many.
#[derive(Debug)]
pub(super) struct TooManyLists;

impl ListLimit {
    fn admit(&self, user: Option<ClientUser>) -> Result<ListPermit, TooManyLists> {
        let mut counts = self.0.lock();
        let of_user = counts.get(&user).copied().unwrap_or_default();
        let max_of_user = if user.is_some() { MAX_LISTS_OF_A_USER } else { MAX_LISTS };
        if of_user >= max_of_user || counts.values().sum::<usize>() >= MAX_LISTS {
            return Err(TooManyLists);
        }
        counts.insert(user.clone(), of_user + 1);
        Ok(ListPermit { limit: self.clone(), user })
    }
}

impl Drop for ListPermit {
    fn drop(&mut self) {
        let mut counts = self.limit.0.lock();
        match counts.get_mut(&self.user) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.user)),
        }
    }
}

impl FromRequestParts<Arc<EndpointState>> for ListPermit {
    type Rejection = TooManyLists;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<EndpointState>,
    ) -> Result<Self, TooManyLists> {
        state.list_limit.admit(parts.extensions.get::<ClientUser>().cloned())
    }
}

impl ListPermit {
    /// Sends a text that is held as a whole.
    pub(super) fn send(self, content_type: &'static str, text: impl Into<Bytes>) -> Response {
        let parts = [text.into(), Bytes::new()].into_iter().map(move |part| {
            let _until_the_end = &self;
            Ok::<_, Infallible>(part)
        });
        let body = Body::from_stream(stream::iter(parts));
        ([(header::CONTENT_TYPE, content_type)], body).into_response()
    }
}

impl IntoResponse for TooManyLists {
    fn into_response(self) -> Response {
        let said = "too many lists, statistics and metrics are read at once";
        (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")], said).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_quarter_of_all_places_and_each_is_given_back() {
        let limit = ListLimit::default();
        let admit = |user: usize| limit.admit(Some(ClientUser::from(user.to_string().as_str())));
        let mut permits = Vec::new();
        for user in 0..4 {
            permits.extend((0..MAX_LISTS_OF_A_USER).map(|_| admit(user).unwrap()));
            assert!(admit(user).is_err(), "{user}");
        }
        assert!(admit(5).is_err(), "all are taken");
        permits.remove(0);
        assert!(admit(1).is_err());
        permits.push(admit(5).unwrap());
        permits.clear();
        assert!(limit.0.lock().is_empty());
    }
}
