//! Having a container's image on the node before the container is made.

use k8s_openapi::api::core::v1::{Container, Pod};
use oarsman_core::config::ImageUser;
use oarsman_core::image::outcome::{self, ImageFailure};
use oarsman_core::image::policy::{Decision, PullPolicy};
use oarsman_core::image_reference::with_default_tag;
use oarsman_core::pod::ContainerKind;
use oarsman_core::report::Activity;
use oarsman_core::start_error::StartReason;
use oarsman_cri::CriError;
use oarsman_cri_types::v1::{AuthConfig, ImageSpec, PullImageRequest};

use super::room::Room;
use super::start::NotStarted;
use super::work::Cancel;
use crate::book::Busy;

/// An image that is on the node.
#[derive(Debug)]
pub(super) struct Present {
    /// What the runtime knows it as.
    pub(super) id: String,
    /// Whom it asks to be run as.
    pub(super) user: ImageUser,
}

/// Makes sure that the image is there.
pub(super) async fn ensure(
    room: &Room,
    pod: &Pod,
    kind: ContainerKind,
    spec: &Container,
    cancel: &Cancel,
) -> Result<Present, NotStarted> {
    let about = Puller { room, pod, kind, spec };
    room.tell_of_pull_secrets(pod);
    let name = spec.image.as_deref().unwrap_or_default();
    let image = match with_default_tag(name) {
        Ok(image) => image,
        Err(error) => return Err(about.fail(name, ImageFailure::InvalidName(error)).await),
    };
    let request = ImageSpec { image: image.clone(), ..ImageSpec::default() };
    let present = match cancel.race(room.node.seams.runtime.image_status(request)).await? {
        Ok(present) => present.map(|image| Present { user: ImageUser::from(&image), id: image.id }),
        Err(error) => {
            return Err(about.fail(&image, ImageFailure::Inspect(error.to_string())).await);
        }
    };
    match (PullPolicy::of(spec).decide(present.is_some()), present) {
        (Decision::UsePresent, Some(present)) => {
            about.say([outcome::present(&image)]).await;
            Ok(present)
        }
        (Decision::Refuse, _) => Err(about.fail(&image, ImageFailure::NeverPull).await),
        (Decision::Pull | Decision::UsePresent, _) => about.pull(&image, cancel).await,
    }
}

struct Puller<'a> {
    room: &'a Room,
    pod: &'a Pod,
    kind: ContainerKind,
    spec: &'a Container,
}

impl Puller<'_> {
    async fn pull(&self, image: &str, cancel: &Cancel) -> Result<Present, NotStarted> {
        let (room, clock) = (self.room, &self.room.node.seams.clock);
        let held = room.memory().pulls.check(&room.uid, image, clock.mono());
        if let Err((failure, remaining)) = held {
            self.say(failure.events(image)).await;
            return Err(NotStarted::Held(failure.start_error(image), clock.mono() + remaining));
        }
        let asked = clock.mono();
        let waiting = self.busy(Activity::WaitingToPull(image.to_owned()));
        // The semaphore is never closed.
        let slot = cancel.race(room.node.pulls.acquire()).await?;
        drop(waiting);
        let begun = clock.mono();
        let pulling = self.busy(Activity::Pulling(image.to_owned()));
        self.say([outcome::pulling(image)]).await;
        let spec = ImageSpec { image: image.to_owned(), ..ImageSpec::default() };
        let pulled = cancel.race(self.try_keys(&spec)).await?;
        drop((slot, pulling));
        match pulled {
            Ok(id) => {
                room.node.pulled.send_modify(|count| *count += 1);
                let seen = room.node.seams.runtime.image_status(spec).await;
                let bytes = seen.as_ref().ok().and_then(|seen| seen.as_ref()).map(|seen| seen.size);
                let (now, bytes) = (clock.mono(), bytes.unwrap_or_default());
                room.node.measures.pull.took(now.since(begun));
                self.say([outcome::pulled(image, now.since(begun), now.since(asked), bytes)]).await;
                // Without its user it would run as root, which the image may not be meant for.
                let why = match seen {
                    Ok(Some(seen)) => return Ok(Present { user: ImageUser::from(&seen), id }),
                    Ok(None) => "it is gone after the pull".to_owned(),
                    Err(error) => error.to_string(),
                };
                Err(self.fail(image, ImageFailure::Inspect(why)).await)
            }
            Err(error) => {
                let failure = ImageFailure::Pull(error.message().to_owned());
                let error = failure.start_error(image);
                room.memory().pulls.failed(&room.uid, image, error, clock.mono());
                Err(self.fail(image, failure).await)
            }
        }
    }

    /// Pulls with every credential there is for the image until one opens it; without any if there is none.
    async fn try_keys(&self, spec: &ImageSpec) -> Result<String, CriError> {
        let keys = self.room.keys(self.pod, &spec.image).await.into_iter().map(Some);
        let mut keys: Vec<Option<AuthConfig>> = keys.collect();
        let last = keys.pop().flatten();
        for auth in keys {
            if let Ok(id) = self.pull_with(spec, auth).await {
                return Ok(id);
            }
        }
        self.pull_with(spec, last).await
    }

    async fn pull_with(
        &self,
        spec: &ImageSpec,
        auth: Option<AuthConfig>,
    ) -> Result<String, CriError> {
        let image = Some(spec.clone());
        let request = PullImageRequest { image, auth, ..PullImageRequest::default() };
        self.room.node.seams.runtime.pull_image(request).await
    }

    fn busy(&self, what: Activity) -> Busy {
        self.room.busy_with(&self.spec.name, what)
    }

    async fn fail(&self, image: &str, failure: ImageFailure) -> NotStarted {
        self.say(failure.events(image)).await;
        let error = failure.start_error(image);
        debug_assert_ne!(error.reason, StartReason::ImagePullBackOff, "that one is held");
        NotStarted::Failed(error)
    }

    async fn say(&self, events: impl IntoIterator<Item = oarsman_core::event::PodEvent>) {
        let about = |event: oarsman_core::event::PodEvent| event.about(self.kind, &self.spec.name);
        self.room.node.recorder.record(self.pod, events.into_iter().map(about));
    }
}
