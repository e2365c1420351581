//! TokenReview and SubjectAccessReview: authenticates and authorizes clients of the kubelet server.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::{ClusterError, Result};

/// The deadline of a review.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// The user name that the authenticator found.
    pub name: String,
    /// The UID, if there is one.
    pub uid: Option<String>,
    /// The groups, by which most rights are bound.
    pub groups: Vec<String>,
    /// Extra attributes of a token, passed on to authorization.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Authenticates tokens and authorizes requests.
#[async_trait]
pub trait Reviewer: Send + Sync + 'static {
    /// The user of a token; none when the token is not valid.
    async fn review_token(&self, token: &str) -> Result<Option<User>>;

    /// Whether a user is allowed this verb on this subresource of the node.
    async fn review_access(&self, user: &User, verb: &str, subresource: &str) -> Result<bool>;
}

/// The API server as a reviewer.
#[derive(Clone)]
pub struct ApiReviewer {
    client: kube::Client,
    node: String,
    /// The client's connections are tasks of the runtime on which they are opened, and other requests share them: all are made here.
    runtime: Handle,
}

impl ApiReviewer {
    /// Reviews requests to this node, on the runtime of the caller.
    pub fn new(client: kube::Client, node: &str) -> Self {
        Self { client, node: node.to_owned(), runtime: Handle::current() }
    }

    async fn create_review<T>(&self, call: &'static str, object: &str, review: T) -> Result<T>
    where
        T: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        let api: Api<T> = Api::all(self.client.clone());
        let unavailable =
            |why: String| ClusterError::Unavailable { call, object: object.to_owned(), why };
        let create = async move { api.create(&PostParams::default(), &review).await };
        let answer = AbortOnDropHandle::new(self.runtime.spawn(create));
        match timeout(LONGEST_CALL, answer).await {
            Ok(Ok(answer)) => answer.map_err(|error| unavailable(error.to_string())),
            Ok(Err(ended)) => Err(unavailable(ended.to_string())),
            Err(_) => Err(unavailable("it was not answered in time".to_owned())),
        }
    }
}

#[async_trait]
impl Reviewer for ApiReviewer {
    async fn review_token(&self, token: &str) -> Result<Option<User>> {
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = self.create_review("review", "a token", review).await?;
        let status = answer.status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user).map(user))
    }

    async fn review_access(&self, user: &User, verb: &str, subresource: &str) -> Result<bool> {
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            version: Some("v1".to_owned()),
            resource: Some("nodes".to_owned()),
            subresource: Some(subresource.to_owned()),
            name: Some(self.node.clone()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(user.name.clone()),
            uid: user.uid.clone(),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let object = format!("what {} may", user.name);
        let answer = self.create_review("review", &object, review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

fn user(info: UserInfo) -> User {
    User {
        name: info.username.unwrap_or_default(),
        uid: info.uid,
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::{self, ThreadId};

    use http_body_util::BodyExt;
    use hyper::http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use oarsman_sync::Guarded;
    use tokio::runtime::Builder;
    use tokio::task::spawn_blocking;
    use tower::BoxError;

    use super::*;

    /// An API server that sends back what it is sent, and the threads on which it was asked.
    fn echo() -> (Client, Arc<Guarded<Vec<ThreadId>>>) {
        let threads = Arc::new(Guarded::new(Vec::new()));
        let asked = Arc::clone(&threads);
        let service = tower::service_fn(move |request: Request<Body>| {
            let asked = Arc::clone(&asked);
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                asked.lock().push(thread::current().id());
                Ok::<_, BoxError>(Response::new(Body::from(body.to_vec())))
            }
        });
        (Client::new(service, "default"), threads)
    }

    #[tokio::test]
    async fn a_review_is_asked_for_on_the_runtime_of_all_other_requests() {
        let (client, threads) = echo();
        let reviewer = ApiReviewer::new(client, "node");
        let review = spawn_blocking(move || {
            let other = Builder::new_current_thread().enable_all().build().unwrap();
            other.block_on(reviewer.review_token("unknown"))
        });
        assert_eq!(review.await.unwrap().unwrap(), None);
        assert_eq!(*threads.lock(), [thread::current().id()]);
    }
}
