//! The images of the node: records of their pulls, and the removal of unused ones.

pub(crate) mod image_gc;
pub(crate) mod image_uses;
pub(crate) mod pull_manager;

use oarsman_core::gc::images::ImageGcPolicy;
use oarsman_core::image::verification::CredentialVerificationPolicy;
use oarsman_core::rate::TokenBucket;

/// How images are pulled, verified and removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageManagerConfig {
    /// Which pods have to prove that they may use an image that is on the node; none if no pod has to.
    pub verification: Option<CredentialVerificationPolicy>,
    /// How often registries are asked (`registryPullQPS`, `registryBurst`); none without a limit.
    pub pull_rate: Option<TokenBucket>,
    /// When unused images are removed; none if they never are.
    pub gc: Option<ImageGcPolicy>,
}
