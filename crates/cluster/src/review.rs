//! Asking the API server about those who ask us: who they are, and what they may.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use tokio::time::timeout;

use crate::{ClusterError, Result};

/// Whoever waits for us to find out who they are does not wait longer.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// Somebody who asks us for something.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// What they are called.
    pub name: String,
    /// What tells them from namesakes, if anything.
    pub uid: Option<String>,
    /// Their groups.
    pub groups: Vec<String>,
    /// What else is known of them.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Who knows who people are and what they may.
#[async_trait]
pub trait Reviewer: Send + Sync + 'static {
    /// Whose token it is; none when it is nobody's.
    async fn who(&self, token: &str) -> Result<Option<User>>;

    /// Whether somebody may do this to this part of our node.
    async fn may(&self, user: &User, verb: &str, subresource: &str) -> Result<bool>;
}

/// The API server as a reviewer.
#[derive(Clone)]
pub struct ApiReviewer {
    client: kube::Client,
    node: String,
}

impl ApiReviewer {
    /// Asks about one node.
    pub fn new(client: kube::Client, node: &str) -> Self {
        Self { client, node: node.to_owned() }
    }

    async fn ask<T>(&self, call: &'static str, object: &str, review: &T) -> Result<T>
    where
        T: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
    {
        let api: Api<T> = Api::all(self.client.clone());
        let params = PostParams::default();
        let unavailable =
            |why: String| ClusterError::Unavailable { call, object: object.to_owned(), why };
        match timeout(LONGEST_CALL, api.create(&params, review)).await {
            Ok(answer) => answer.map_err(|error| unavailable(error.to_string())),
            Err(_) => Err(unavailable("it was not answered in time".to_owned())),
        }
    }
}

#[async_trait]
impl Reviewer for ApiReviewer {
    async fn who(&self, token: &str) -> Result<Option<User>> {
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = self.ask("review", "a token", &review).await?;
        let status = answer.status.filter(|status| status.authenticated == Some(true));
        Ok(status.and_then(|status| status.user).map(user))
    }

    async fn may(&self, user: &User, verb: &str, subresource: &str) -> Result<bool> {
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
        let answer = self.ask("review", &object, &review).await?;
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
