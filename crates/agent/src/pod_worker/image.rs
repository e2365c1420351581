//! The image puller: has a container's image on the node before the container is created.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_core::cri_spec::ImageUser;
use oarsman_core::event::PodEvent;
use oarsman_core::image::outcome::{self, ImageFailure};
use oarsman_core::image::policy::{PullDecision, PullPolicy};
use oarsman_core::image::pulls::FailedPulls;
use oarsman_core::image_reference::with_default_tag;
use oarsman_core::pod::ContainerKind;
use oarsman_core::report::Activity;
use oarsman_core::start_error::StartReason;
use oarsman_cri::CriError;
use oarsman_cri_types::v1::{AuthConfig, Image, ImageSpec, PullImageRequest};
use oarsman_sync::Guarded;

use super::context::PodContext;
use super::starter::NotStarted;
use super::work::Cancel;
use crate::report_store::ActivityGuard;

/// A registry that refuses a credential does so within seconds. After this time no other one is tried: a registry that lets each of
/// many trickle must not keep the slot for longer than one pull may last.
const TRIES_OF_CREDENTIALS: Duration = Duration::from_secs(10 * 60);

/// Which images of the pod could not be pulled, and until when they are not tried again.
#[derive(Debug, Default)]
pub(super) struct ImagePuller(Guarded<FailedPulls>);

/// An image that is on the node.
#[derive(Debug)]
pub(super) struct PresentImage {
    /// What the runtime knows it as.
    pub(super) id: String,
    /// Which user it asks to be run as.
    pub(super) user: ImageUser,
}

impl From<Image> for PresentImage {
    fn from(image: Image) -> Self {
        Self { user: ImageUser::from(&image), id: image.id }
    }
}

/// The container that an image is for.
pub(super) struct ImageRequest<'a> {
    pub(super) context: &'a PodContext,
    pub(super) pod: &'a Pod,
    pub(super) kind: ContainerKind,
    pub(super) spec: &'a Container,
    pub(super) cancel: &'a Cancel,
}

impl ImageRequest<'_> {
    /// Makes sure that the image is there.
    pub(super) async fn ensure_image_exists(&self) -> Result<PresentImage, NotStarted> {
        self.context.record_missing_pull_secrets(self.pod);
        let image = match with_default_tag(self.written()) {
            Ok(image) => image,
            Err(error) => return Err(self.fail(&ImageFailure::InvalidName(error))),
        };
        let status = self.context.node.seams.runtime.image_status(image_spec(&image));
        let present = match self.cancel.race(status).await? {
            Ok(present) => present.map(PresentImage::from),
            Err(error) => return Err(self.fail(&ImageFailure::Inspect(error.to_string()))),
        };
        match (PullPolicy::of(self.spec).decide(present.is_some()), present) {
            (PullDecision::UsePresent, Some(present)) => {
                self.record([outcome::present(self.written())]);
                Ok(present)
            }
            (PullDecision::Refuse, _) => Err(self.fail(&ImageFailure::NeverPull)),
            (PullDecision::Pull | PullDecision::UsePresent, _) => self.pull(&image).await,
        }
    }

    async fn pull(&self, image: &str) -> Result<PresentImage, NotStarted> {
        let (context, failed_pulls) = (self.context, &self.context.puller.0);
        let held = failed_pulls.lock().check(&context.uid, image, context.now());
        if let Err((failure, remaining)) = held {
            self.record(failure.events(self.written()));
            return Err(NotStarted::Held(
                failure.start_error(self.written()),
                context.now() + remaining,
            ));
        }
        match self.pull_in_turn(image).await? {
            Ok(present) => Ok(present),
            Err(failure) => {
                if let ImageFailure::Pull(_) = failure {
                    let error = failure.start_error(self.written());
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
    ) -> Result<Result<PresentImage, ImageFailure>, NotStarted> {
        let (context, asked) = (self.context, self.context.now());
        let waiting = self.begin_activity(Activity::WaitingToPull(image.to_owned()));
        let namespace = &context.name.namespace;
        let slot = self.cancel.race(context.node.pulls.acquire(namespace)).await?;
        drop(waiting);
        let begun = context.now();
        let pulling = self.begin_activity(Activity::Pulling(image.to_owned()));
        self.record([outcome::pulling(self.written())]);
        let pulled = self.cancel.race(self.try_credentials(image)).await?;
        drop((slot, pulling));
        let id = match pulled {
            Ok(id) => id,
            Err(error) => return Ok(Err(ImageFailure::Pull(error))),
        };
        context.node.pulled.send_modify(|count| *count += 1);
        let seen = context.node.seams.runtime.image_status(image_spec(image)).await;
        let bytes = seen.as_ref().ok().and_then(|seen| seen.as_ref()).map(|seen| seen.size);
        let now = context.now();
        context.node.metrics.pull.observe(now.since(begun));
        let bytes = bytes.unwrap_or_default();
        self.record([outcome::pulled(self.written(), now.since(begun), now.since(asked), bytes)]);
        // Without its user it would run as root, which the image may not be meant for.
        Ok(match seen {
            Ok(Some(seen)) => Ok(PresentImage { user: ImageUser::from(&seen), id }),
            Ok(None) => Err(ImageFailure::Inspect("it is gone after the pull".to_owned())),
            Err(error) => Err(ImageFailure::Inspect(error.to_string())),
        })
    }

    /// Pulls with every credential there is for the image until one succeeds; without any if there is none. What all of them failed
    /// with is told.
    async fn try_credentials(&self, image: &str) -> Result<String, String> {
        let credentials = self.context.credentials(self.pod, image).await;
        let mut credentials: Vec<Option<AuthConfig>> = credentials.into_iter().map(Some).collect();
        if credentials.is_empty() {
            credentials.push(None);
        }
        let (begun, mut errors) = (self.context.now(), Vec::new());
        for auth in credentials {
            match self.pull_with(image, auth).await {
                Ok(id) => return Ok(id),
                Err(error) => errors.push(error.message().to_owned()),
            }
            if self.context.now().since(begun) >= TRIES_OF_CREDENTIALS {
                break;
            }
        }
        Err(outcome::joined_pull_errors(&errors))
    }

    /// The image as the spec names it, which people know it by.
    fn written(&self) -> &str {
        self.spec.image.as_deref().unwrap_or_default()
    }

    async fn pull_with(&self, image: &str, auth: Option<AuthConfig>) -> Result<String, CriError> {
        let image = Some(image_spec(image));
        let request = PullImageRequest { image, auth, ..PullImageRequest::default() };
        self.context.node.seams.runtime.pull_image(request).await
    }

    fn begin_activity(&self, what: Activity) -> ActivityGuard {
        self.context.begin_container_activity(&self.spec.name, what)
    }

    fn fail(&self, failure: &ImageFailure) -> NotStarted {
        self.record(failure.events(self.written()));
        let error = failure.start_error(self.written());
        debug_assert_ne!(error.reason, StartReason::ImagePullBackOff, "that one is held");
        NotStarted::Failed(error)
    }

    fn record(&self, events: impl IntoIterator<Item = PodEvent>) {
        let about = |event: PodEvent| event.about(self.kind, &self.spec.name);
        self.context.node.recorder.record(self.pod, events.into_iter().map(about));
    }
}

fn image_spec(image: &str) -> ImageSpec {
    ImageSpec { image: image.to_owned(), ..ImageSpec::default() }
}
