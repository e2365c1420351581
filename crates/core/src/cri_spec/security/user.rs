//! The user a container runs as, and whether that may be root.

use k8s_openapi::api::core::v1::{Container, Pod, SecurityContext};
use oarsman_cri_types::v1::{Image, Int64Value};

use crate::cri_spec::error::NonRootError;
use crate::pod::PodExt;

/// The user that an image asks to be run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageUser {
    /// By number. An image without a user runs as root.
    Id(i64),
    /// By name, which only the image can translate.
    Name(String),
}

impl Default for ImageUser {
    fn default() -> Self {
        Self::Id(0)
    }
}

impl From<&Image> for ImageUser {
    fn from(image: &Image) -> Self {
        match (&image.uid, image.username.as_str()) {
            (Some(uid), _) => Self::Id(uid.value),
            (None, "") => Self::default(),
            (None, name) => Self::Name(name.to_owned()),
        }
    }
}

/// The number and the name, one of which is set.
pub(super) fn run_as(context: &SecurityContext, image: &ImageUser) -> (Option<Int64Value>, String) {
    let number = |value| (Some(Int64Value { value }), String::new());
    match (context.run_as_user, image) {
        (Some(user), _) => number(user),
        (None, ImageUser::Id(user)) => number(*user),
        (None, ImageUser::Name(name)) => (None, name.clone()),
    }
}

/// Refuses a container that must not be root and is, or may be.
pub(super) fn verify_non_root(
    pod: &Pod,
    spec: &Container,
    context: &SecurityContext,
    image: &ImageUser,
) -> Result<(), NonRootError> {
    if context.run_as_non_root != Some(true) {
        return Ok(());
    }
    let name = pod.full_name();
    let pod = format!("{}_{}({})", name.name, name.namespace, pod.uid());
    let container = spec.name.clone();
    match (context.run_as_user, image) {
        (Some(0), _) => Err(NonRootError::RunAsUser { pod, container }),
        (Some(_), _) => Ok(()),
        (None, ImageUser::Name(user)) => {
            Err(NonRootError::NamedUser { user: user.clone(), pod, container })
        }
        (None, ImageUser::Id(0)) => Err(NonRootError::ImageIsRoot { pod, container }),
        (None, ImageUser::Id(user)) => match i32::try_from(*user).is_ok_and(|user| user > 0) {
            true => Ok(()),
            false => Err(NonRootError::InvalidUser { user: *user, pod, container }),
        },
    }
}
