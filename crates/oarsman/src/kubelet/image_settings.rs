//! How images are pulled, verified and removed, as a KubeletConfiguration says it.

use std::time::Duration;

use oarsman_agent::ImageManagerConfig;
use oarsman_core::gc::images::ImageGcPolicy;
use oarsman_core::image::verification::CredentialVerificationPolicy;
use oarsman_core::rate::TokenBucket;
use oarsman_kubelet_config::enums::ImagePullCredentialsVerificationPolicy as Setting;
use oarsman_kubelet_config::{KubeletConfiguration, is_enabled};

pub(super) fn images(kubelet: &KubeletConfiguration) -> ImageManagerConfig {
    let verifies = is_enabled(&kubelet.feature_gates, "KubeletEnsureSecretPulledImages");
    ImageManagerConfig {
        verification: verifies.then(|| verification(kubelet)),
        pull_rate: pull_rate(kubelet.registry_pull_qps, kubelet.registry_burst),
        gc: gc(kubelet),
    }
}

fn verification(kubelet: &KubeletConfiguration) -> CredentialVerificationPolicy {
    match kubelet.image_pull_credentials_verification_policy {
        Setting::NeverVerify => CredentialVerificationPolicy::NeverVerify,
        Setting::NeverVerifyPreloadedImages => {
            CredentialVerificationPolicy::NeverVerifyPreloadedImages
        }
        Setting::NeverVerifyAllowlistedImages => {
            let list = kubelet.preloaded_images_verification_allowlist.clone();
            CredentialVerificationPolicy::NeverVerifyAllowlistedImages(list)
        }
        Setting::AlwaysVerify => CredentialVerificationPolicy::AlwaysVerify,
    }
}

/// None without a limit.
fn pull_rate(per_second: i32, burst: i32) -> Option<TokenBucket> {
    let every = Duration::from_secs(1).checked_div(u32::try_from(per_second).ok()?)?;
    Some(TokenBucket::new(u32::try_from(burst).unwrap_or_default(), every))
}

/// None if images never go: a disk cannot be fuller than full.
fn gc(kubelet: &KubeletConfiguration) -> Option<ImageGcPolicy> {
    let percent = |number: i32| u64::try_from(number).unwrap_or_default();
    let max_age = Some(kubelet.image_maximum_gc_age.or_zero()).filter(|age| !age.is_zero());
    let policy = ImageGcPolicy {
        high_percent: percent(kubelet.image_gc_high_threshold_percent),
        low_percent: percent(kubelet.image_gc_low_threshold_percent),
        min_age: kubelet.image_minimum_gc_age.or_zero(),
        max_age,
    };
    (policy.high_percent < 100 || max_age.is_some()).then_some(policy)
}

#[cfg(test)]
mod tests {
    use oarsman_core::time::Mono;
    use oarsman_kubelet_config::GoDuration;

    use super::*;

    #[test]
    fn defaults_are_those_of_the_go_kubelet() {
        let images = images(&KubeletConfiguration::default());
        let policy = CredentialVerificationPolicy::NeverVerifyPreloadedImages;
        assert_eq!(images.verification, Some(policy));
        assert_eq!(images.gc, Some(ImageGcPolicy::default()));
        let mut rate = images.pull_rate.unwrap();
        let now = Mono(Duration::from_secs(100));
        assert_eq!((0..99).filter(|_| rate.take(now).is_ok()).count(), 10);
        assert_eq!(rate.wait(now), Duration::from_millis(200));
    }

    #[test]
    fn configured_values_are_used() {
        let mut kubelet = KubeletConfiguration {
            image_pull_credentials_verification_policy: Setting::NeverVerifyAllowlistedImages,
            preloaded_images_verification_allowlist: vec!["r.io/a".to_owned()],
            registry_pull_qps: 0,
            image_gc_high_threshold_percent: 100,
            ..KubeletConfiguration::default()
        };
        let read = images(&kubelet);
        let list = vec!["r.io/a".to_owned()];
        let policy = CredentialVerificationPolicy::NeverVerifyAllowlistedImages(list);
        assert_eq!((read.verification, read.pull_rate), (Some(policy), None));
        assert_eq!(read.gc, None, "neither a threshold nor an age");
        kubelet.image_maximum_gc_age = GoDuration::from_secs(3600);
        let gc = images(&kubelet).gc.unwrap();
        assert_eq!((gc.high_percent, gc.max_age), (100, Some(Duration::from_secs(3600))));
        for (setting, expected) in [
            (Setting::NeverVerify, CredentialVerificationPolicy::NeverVerify),
            (Setting::AlwaysVerify, CredentialVerificationPolicy::AlwaysVerify),
        ] {
            kubelet.image_pull_credentials_verification_policy = setting;
            assert_eq!(images(&kubelet).verification, Some(expected));
        }
        kubelet.feature_gates.insert("KubeletEnsureSecretPulledImages".to_owned(), false);
        assert_eq!(images(&kubelet).verification, None);
    }
}
