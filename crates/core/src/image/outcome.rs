//! How getting an image went: the events to record and, when it failed, what the container waits for.

use std::fmt;
use std::time::Duration;

use crate::duration;
use crate::event::PodEvent;
use crate::image_reference::InvalidName;
use crate::start_error::{StartError, StartReason};

/// Why a container has no image to start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageFailure {
    /// No image can have that name.
    InvalidName(InvalidName),
    /// The runtime could not say whether it has the image; its error.
    Inspect(String),
    /// The node does not have it and may not ask for it.
    NeverPull,
    /// The last pull failed and the next try is later.
    BackOff {
        /// What the last pull failed with.
        last: Option<StartError>,
    },
    /// The pull failed. An error that gRPC calls unknown is given without gRPC's dressing, so that the
    /// runtime's own first word can be read.
    Pull(String),
}

impl ImageFailure {
    /// What the container waits for.
    pub fn start_error(&self, image: &str) -> StartError {
        let (reason, message) = match self {
            Self::InvalidName(_) => (StartReason::InvalidImageName, self.sentence(image)),
            Self::Inspect(_) => (StartReason::ImageInspectError, self.sentence(image)),
            Self::NeverPull => (StartReason::ErrImageNeverPull, self.sentence(image)),
            Self::BackOff { last: None } => (StartReason::ImagePullBackOff, self.sentence(image)),
            Self::BackOff { last: Some(StartError { reason, message }) } => {
                let sentence = self.sentence(image);
                (StartReason::ImagePullBackOff, format!("{sentence}: {reason}: {message}"))
            }
            Self::Pull(error) => pull_error(image, error),
        };
        StartError { reason, message }
    }

    /// What to record, in order.
    pub fn events(&self, image: &str) -> Vec<PodEvent> {
        let sentence = self.sentence(image);
        let first = match self {
            Self::InvalidName(_) | Self::Inspect(_) => PodEvent::warning("InspectFailed", sentence),
            Self::NeverPull => PodEvent::warning("ErrImageNeverPull", sentence),
            Self::BackOff { .. } => PodEvent::normal("BackOff", sentence),
            Self::Pull(_) => PodEvent::warning("Failed", sentence),
        };
        let reason = self.start_error(image).reason;
        vec![first, PodEvent::warning("Failed", format!("Error: {reason}"))]
    }

    fn sentence(&self, image: &str) -> String {
        match self {
            Self::InvalidName(why) => format!("Failed to apply default image tag {image:?}: {why}"),
            Self::Inspect(error) => format!("Failed to inspect image {image:?}: {error}"),
            Self::NeverPull => {
                format!("Container image {image:?} is not present with pull policy of Never")
            }
            Self::BackOff { .. } => format!("Back-off pulling image {image:?}"),
            Self::Pull(error) => format!("Failed to pull image {image:?}: {error}"),
        }
    }
}

/// The runtime says by its first word when the registry or a signature is to blame.
fn pull_error(image: &str, error: &str) -> (StartReason, String) {
    let blames = [
        (StartReason::RegistryUnavailable, "the registry is unavailable"),
        (StartReason::SignatureValidationFailed, "the signature validation failed"),
    ];
    for (reason, blame) in blames {
        if let Some(rest) = error.strip_prefix(&reason.to_string()) {
            return (reason, format!("image pull failed for {image} because {blame}{rest}"));
        }
    }
    (StartReason::ErrImagePull, error.to_owned())
}

/// What the tries with several credentials failed with, each error once, as the Go kubelet joins them.
pub fn joined_pull_errors(errors: &[String]) -> String {
    let mut different: Vec<&str> = Vec::new();
    for error in errors {
        if !different.contains(&error.as_str()) {
            different.push(error);
        }
    }
    match &different[..] {
        [only] => (*only).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// The event that is recorded before a pull.
pub fn pulling(image: &str) -> PodEvent {
    PodEvent::normal("Pulling", format!("Pulling image {image:?}"))
}

/// Registries were asked too often.
pub const PULL_QPS_EXCEEDED: &str = "pull QPS exceeded";

/// The error of a pull that could not be recorded, and therefore was not made.
pub fn intent_not_recorded(image: &str, error: impl fmt::Display) -> String {
    format!("Failed to record image pull intent for container image {image:?}: {error}")
}

/// The node has the image already, and the pod may use it, if that is verified on this node.
pub fn present(image: &str, is_verified: bool) -> PodEvent {
    let access = if is_verified { " and can be accessed by the pod" } else { "" };
    let sentence = format!("Container image {image:?} already present on machine{access}");
    PodEvent::normal("Pulled", sentence)
}

/// A pull succeeded: how long it took, alone and with the wait for its turn, and how big the image is.
pub fn pulled(image: &str, took: Duration, with_waiting: Duration, bytes: u64) -> PodEvent {
    let (took, with_waiting) = (duration::spell(took), duration::spell(with_waiting));
    let sentence = format!(
        "Successfully pulled image {image:?} in {took} ({with_waiting} including waiting). Image size: {bytes} bytes."
    );
    PodEvent::normal("Pulled", sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_reference::with_default_tag;

    fn last(reason: StartReason, message: &str) -> ImageFailure {
        let message = message.to_owned();
        ImageFailure::BackOff { last: Some(StartError { reason, message }) }
    }

    #[test]
    fn every_failure_has_its_reason_and_its_sentence() {
        use StartReason as R;
        let invalid = with_default_tag("X").unwrap_err();
        let rows = [
            (
                ImageFailure::InvalidName(invalid),
                R::InvalidImageName,
                "Failed to apply default image tag \"X\": couldn't parse image name \"X\": invalid reference format: repository name must be lowercase",
            ),
            (
                ImageFailure::Inspect("gone".into()),
                R::ImageInspectError,
                "Failed to inspect image \"X\": gone",
            ),
            (
                ImageFailure::NeverPull,
                R::ErrImageNeverPull,
                "Container image \"X\" is not present with pull policy of Never",
            ),
            (
                ImageFailure::BackOff { last: None },
                R::ImagePullBackOff,
                "Back-off pulling image \"X\"",
            ),
            (
                last(R::ErrImagePull, "not found"),
                R::ImagePullBackOff,
                "Back-off pulling image \"X\": ErrImagePull: not found",
            ),
            (ImageFailure::Pull("not found".into()), R::ErrImagePull, "not found"),
            (
                ImageFailure::Pull("RegistryUnavailable: no route".into()),
                R::RegistryUnavailable,
                "image pull failed for X because the registry is unavailable: no route",
            ),
            (
                ImageFailure::Pull("SignatureValidationFailed".into()),
                R::SignatureValidationFailed,
                "image pull failed for X because the signature validation failed",
            ),
        ];
        for (failure, reason, message) in rows {
            let expected = StartError { reason, message: message.to_owned() };
            assert_eq!(failure.start_error("X"), expected);
        }
    }

    #[test]
    fn every_image_failure_has_an_event_with_the_error_and_one_with_the_reason() {
        let rows = [
            (
                ImageFailure::Inspect("e".into()),
                "InspectFailed",
                "Failed to inspect image \"x\": e",
                "ImageInspectError",
            ),
            (
                ImageFailure::Pull("e".into()),
                "Failed",
                "Failed to pull image \"x\": e",
                "ErrImagePull",
            ),
            (
                ImageFailure::NeverPull,
                "ErrImageNeverPull",
                "Container image \"x\" is not present with pull policy of Never",
                "ErrImageNeverPull",
            ),
        ];
        for (failure, event, sentence, reason) in rows {
            let expected = vec![
                PodEvent::warning(event, sentence),
                PodEvent::warning("Failed", format!("Error: {reason}")),
            ];
            assert_eq!(failure.events("x"), expected);
        }
    }

    #[test]
    fn the_errors_of_several_credentials_are_joined_each_once() {
        let join = |errors: &[&str]| {
            joined_pull_errors(&errors.iter().map(|&error| error.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(join(&["denied"]), "denied");
        assert_eq!(join(&["denied", "denied"]), "denied");
        assert_eq!(join(&["denied", "expired", "denied"]), "[denied, expired]");
    }

    #[test]
    fn waiting_for_the_next_pull_is_no_reason_to_worry_and_does_not_repeat_the_error() {
        let events = last(StartReason::ErrImagePull, "not found").events("x");
        let expected = vec![
            PodEvent::normal("BackOff", "Back-off pulling image \"x\""),
            PodEvent::warning("Failed", "Error: ImagePullBackOff"),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn the_event_of_a_pull_has_its_duration() {
        let event =
            pulled("x", Duration::from_millis(308), Duration::from_micros(1_500_900), 64_753_325);
        let sentence = "Successfully pulled image \"x\" in 308ms (1.5s including waiting). Image size: 64753325 bytes.";
        assert_eq!(event, PodEvent::normal("Pulled", sentence));
        assert_eq!(pulling("x"), PodEvent::normal("Pulling", "Pulling image \"x\""));
        let sentence =
            "Container image \"x\" already present on machine and can be accessed by the pod";
        assert_eq!(present("x", true), PodEvent::normal("Pulled", sentence));
        let sentence = "Container image \"x\" already present on machine";
        assert_eq!(present("x", false), PodEvent::normal("Pulled", sentence));
    }
}
