//! The image puller: has a container's image on the node before the container is created.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::ImageUser;
use oarsman_core::event::PodEvent;
use oarsman_core::ids::SandboxId;
use oarsman_core::image::credentials::TrackedAuthConfig;
use oarsman_core::image::outcome::{self, ImageFailure};
use oarsman_core::image::policy::{PullDecision, PullPolicy};
use oarsman_core::image::pulls::FailedPulls;
use oarsman_core::image::verification::{
    CredentialMatch, CredentialVerificationPolicy, ImageOnNode, MustPullResult, RequiredProof,
    match_credentials,
};
use oarsman_core::image_reference::with_default_tag;
use oarsman_core::pod::ContainerKind;
use oarsman_core::report::Activity;
use oarsman_core::start_error::StartReason;
use oarsman_cri::CriError;
use oarsman_cri_types::v1::{AuthConfig, Image, ImageSpec, PodSandboxConfig, PullImageRequest};
use oarsman_sync::Guarded;

use super::container_config;
use super::context::PodContext;
use super::starter::NotStarted;
use super::work::{Cancel, Cancelled};
use crate::images::image_uses::ImageLease;
use crate::metrics::{ImageRequestLabels, image_size_range, pull_policy};
use crate::report_store::ActivityGuard;

/// A registry that refuses a credential does so within seconds. After this time no other one is tried: a registry that lets each of
/// many trickle must not keep the slot for longer than one pull may last.
const TRIES_OF_CREDENTIALS: Duration = Duration::from_secs(10 * 60);

/// Which images of the pod could not be pulled, and until when they are not tried again.
#[derive(Debug, Default)]
pub(super) struct ImagePuller(Guarded<FailedPulls>);

/// An image that is on the node. It is not removed before this is dropped.
#[derive(Debug)]
pub(super) struct PresentImage<'a> {
    /// What the runtime knows it as.
    pub(super) id: String,
    /// Which user it asks to be run as.
    pub(super) user: ImageUser,
    _lease: ImageLease<'a>,
}

/// An image that a pod needs.
pub(super) struct ImageRequest<'a> {
    pub(super) context: &'a PodContext,
    pub(super) pod: &'a Pod,
    /// The image as the spec names it, which people know it by.
    pub(super) image: &'a str,
    pub(super) policy: PullPolicy,
    /// The container that it is for; none if it is for the pod as a whole.
    pub(super) container: Option<(ContainerKind, &'a str)>,
    /// The sandbox of the pod, whose configuration goes with the pull.
    pub(super) sandbox: &'a SandboxId,
    pub(super) cancel: &'a Cancel,
}

/// A pull that succeeded.
struct PulledImage {
    id: String,
    /// The credential that opened the registry; none if it is open.
    credential: Option<TrackedAuthConfig>,
}

/// A pull that failed with every credential.
struct FailedPull {
    errors: String,
    /// The runtime did not answer one of the tries: the image may come all the same.
    is_uncertain: bool,
}

impl<'a> ImageRequest<'a> {
    /// Makes sure that the image is there, and that the pod may use it.
    pub(super) async fn ensure_image_exists(&self) -> Result<PresentImage<'a>, NotStarted> {
        self.context.record_missing_pull_secrets(self.pod);
        let image = match with_default_tag(self.image) {
            Ok(image) => image,
            Err(error) => {
                self.count(None, None);
                return Err(self.fail(&ImageFailure::InvalidName(error)));
            }
        };
        let present = self.present(&image).await?;
        let is_there = Some(present.is_some());
        let is_present = match &present {
            Some((present, _)) if self.policy != PullPolicy::Always => {
                let may_use = self.may_use(present).await;
                may_use.inspect_err(|_| self.count(is_there, None))?
            }
            Some(_) => true,
            None => false,
        };
        match (self.policy.decide(is_present), present) {
            (PullDecision::UsePresent, Some((image, lease))) => {
                self.count(is_there, Some(false));
                let is_verified = self.context.node.pull_manager.verification().is_some();
                self.record([outcome::present(self.image, is_verified)]);
                Ok(PresentImage { user: ImageUser::from(&image), id: image.id, _lease: lease })
            }
            (PullDecision::Refuse, _) => {
                self.count(is_there, Some(true));
                Err(self.fail(&ImageFailure::NeverPull))
            }
            (PullDecision::Pull | PullDecision::UsePresent, _) => {
                self.count(is_there, Some(true));
                self.pull(&image).await
            }
        }
    }

    /// Counts the request by what is known of the image.
    fn count(&self, present_locally: Option<bool>, pull_required: Option<bool>) {
        let pull_policy = pull_policy(self.policy);
        let labels = ImageRequestLabels { present_locally, pull_policy, pull_required };
        self.context.node.metrics.image_requests.increment(labels);
    }

    /// The image if the node has it, which it keeps from now on. One that is being removed is looked at again afterwards.
    async fn present(&self, image: &str) -> Result<Option<(Image, ImageLease<'a>)>, NotStarted> {
        loop {
            let status = self.context.node.seams.runtime.image_status(self.image_spec(image));
            let present = match self.cancel.race(status).await? {
                Ok(present) => present,
                Err(error) => {
                    self.count(None, None);
                    return Err(self.fail(&ImageFailure::Inspect(error.to_string())));
                }
            };
            let Some(present) = present else { return Ok(None) };
            match self.context.node.image_uses.lease(&present.id) {
                Ok(lease) => return Ok(Some((present, lease))),
                Err(removal) => self.cancel.race(removal.ended()).await?,
            }
        }
    }

    /// Keeps an image that was pulled.
    async fn lease(&self, id: &str) -> Result<ImageLease<'a>, Cancelled> {
        loop {
            match self.context.node.image_uses.lease(id) {
                Ok(lease) => return Ok(lease),
                Err(removal) => self.cancel.race(removal.ended()).await?,
            }
        }
    }

    /// Whether the pod may use an image that is on the node without pulling it. One that it may not use is as good as absent.
    async fn may_use(&self, present: &Image) -> Result<bool, Cancelled> {
        let Some(policy) = self.context.node.pull_manager.verification() else { return Ok(true) };
        let result = self.check_must_pull(policy, present).await?;
        self.context.node.metrics.images.must_pull_checks.increment(result);
        Ok(result.may_use())
    }

    async fn check_must_pull(
        &self,
        policy: &CredentialVerificationPolicy,
        present: &Image,
    ) -> Result<MustPullResult, Cancelled> {
        let (context, manager) = (self.context, &self.context.node.pull_manager);
        let history = self.cancel.race(manager.history(&present.id)).await?;
        let names: Vec<String> =
            present.repo_tags.iter().chain(&present.repo_digests).cloned().collect();
        let on_node = ImageOnNode { requested: self.image, names: &names };
        let known = match policy.required_proof(on_node, &history) {
            RequiredProof::Decided(result) => return Ok(result),
            RequiredProof::OneOf(known) => known,
        };
        let presented = self.cancel.race(context.credentials(self.pod, self.image)).await?;
        let found = match_credentials(known, &presented);
        let result = MustPullResult::by_credentials(&found);
        if let CredentialMatch::Changed(credentials) = found {
            manager.record_credentials(self.image, &present.id, credentials).await;
        }
        Ok(result)
    }

    async fn pull(&self, image: &str) -> Result<PresentImage<'a>, NotStarted> {
        let (context, failed_pulls) = (self.context, &self.context.puller.0);
        let held = failed_pulls.lock().check(&context.uid, image, context.now());
        if let Err((failure, remaining)) = held {
            self.record(failure.events(self.image));
            return Err(NotStarted::Held(
                failure.start_error(self.image),
                context.now() + remaining,
            ));
        }
        match self.pull_in_turn(image).await? {
            Ok(present) => Ok(present),
            Err(failure) => {
                if let ImageFailure::Pull(_) = failure {
                    let error = failure.start_error(self.image);
                    failed_pulls.lock().failed(&context.uid, image, error, context.now());
                }
                Err(self.fail(&failure))
            }
        }
    }

    /// Waits for one of the node's pull slots, and pulls.
    async fn pull_in_turn(
        &self,
        image: &str,
    ) -> Result<Result<PresentImage<'a>, ImageFailure>, NotStarted> {
        let (context, asked) = (self.context, self.context.now());
        let waiting = self.begin_activity(Activity::WaitingToPull(image.to_owned()));
        let namespace = &context.name.namespace;
        let slot = self.cancel.race(context.node.pulls.acquire(namespace)).await?;
        drop(waiting);
        let begun = context.now();
        let pulling = self.begin_activity(Activity::Pulling(image.to_owned()));
        self.record([outcome::pulling(self.image)]);
        let pulled = self.cancel.race(self.recorded_pull(image)).await?;
        drop((slot, pulling));
        context.node.metrics.startup.add_pull(&context.uid, context.now().since(asked));
        let id = match pulled {
            Ok(id) => id,
            Err(error) => return Ok(Err(ImageFailure::Pull(error))),
        };
        context.node.pulled.send_modify(|count| *count += 1);
        let lease = self.lease(&id).await?;
        let seen = context.node.seams.runtime.image_status(self.image_spec(image)).await;
        let bytes = seen.as_ref().ok().and_then(|seen| seen.as_ref()).map(|seen| seen.size);
        let now = context.now();
        let bytes = bytes.unwrap_or_default();
        context.node.metrics.pulls.observe_duration(image_size_range(bytes), now.since(begun));
        self.record([outcome::pulled(self.image, now.since(begun), now.since(asked), bytes)]);
        // Without its user it would run as root, which the image may not be meant for.
        Ok(match seen {
            Ok(Some(seen)) => Ok(PresentImage { user: ImageUser::from(&seen), id, _lease: lease }),
            Ok(None) => Err(ImageFailure::Inspect("it is gone after the pull".to_owned())),
            Err(error) => Err(ImageFailure::Inspect(error.to_string())),
        })
    }

    /// Pulls, with a record before and after it. A pull that is cancelled, or that the runtime did not answer, stays recorded as begun.
    async fn recorded_pull(&self, image: &str) -> Result<String, String> {
        let manager = &self.context.node.pull_manager;
        if !manager.take_pull() {
            return Err(outcome::PULL_QPS_EXCEEDED.to_owned());
        }
        let intent = manager
            .begin(self.image)
            .await
            .map_err(|error| outcome::intent_not_recorded(self.image, &error))?;
        match self.try_credentials(image).await {
            Ok(pulled) => {
                intent.succeeded(&pulled.id, pulled.credential.as_ref()).await;
                Ok(pulled.id)
            }
            Err(FailedPull { errors, is_uncertain: true }) => Err(errors),
            Err(FailedPull { errors, is_uncertain: false }) => {
                intent.failed().await;
                Err(errors)
            }
        }
    }

    /// Pulls with every credential there is for the image until one succeeds; without any if there is none. What all of them failed
    /// with is told.
    async fn try_credentials(&self, image: &str) -> Result<PulledImage, FailedPull> {
        let sandbox = container_config::sandbox_of_pull(self.context, self.pod, self.sandbox).await;
        let mut credentials: Vec<Option<TrackedAuthConfig>> =
            self.context.credentials_to_try(self.pod, image).await.into_iter().map(Some).collect();
        if credentials.is_empty() {
            credentials.push(None);
        }
        let (begun, mut errors, mut is_uncertain) = (self.context.now(), Vec::new(), false);
        for credential in credentials {
            let auth = credential.as_ref().map(|credential| credential.auth.clone());
            match self.pull_with(image, auth, sandbox.clone()).await {
                Ok(id) => return Ok(PulledImage { id, credential }),
                Err(error) => {
                    is_uncertain |= error.is_timeout() || error.is_unavailable();
                    errors.push(error.message().to_owned());
                }
            }
            if self.context.now().since(begun) >= TRIES_OF_CREDENTIALS {
                break;
            }
        }
        Err(FailedPull { errors: outcome::joined_pull_errors(&errors), is_uncertain })
    }

    async fn pull_with(
        &self,
        image: &str,
        auth: Option<AuthConfig>,
        sandbox_config: Option<PodSandboxConfig>,
    ) -> Result<String, CriError> {
        let request =
            PullImageRequest { image: Some(self.image_spec(image)), auth, sandbox_config };
        self.context.node.seams.runtime.pull_image(request).await
    }

    /// The image as the runtime is asked for it, with the annotations of the pod.
    fn image_spec(&self, image: &str) -> ImageSpec {
        let annotations = self.pod.metadata.annotations.iter().flatten();
        ImageSpec {
            image: image.to_owned(),
            annotations: annotations.map(|(key, value)| (key.clone(), value.clone())).collect(),
            ..ImageSpec::default()
        }
    }

    fn begin_activity(&self, what: Activity) -> ActivityGuard {
        match self.container {
            Some((_, name)) => self.context.begin_container_activity(name, what),
            None => self.context.begin_activity(what),
        }
    }

    fn fail(&self, failure: &ImageFailure) -> NotStarted {
        self.record(failure.events(self.image));
        let error = failure.start_error(self.image);
        debug_assert_ne!(error.reason, StartReason::ImagePullBackOff, "that one is held");
        NotStarted::Failed(error)
    }

    fn record(&self, events: impl IntoIterator<Item = PodEvent>) {
        let about = |event: PodEvent| match self.container {
            Some((kind, name)) => event.about(kind, name),
            None => event,
        };
        self.context.node.recorder.record(self.pod, events.into_iter().map(about));
    }
}
