//! Validation of the server, image credentials, tracing and taints.

use super::ProblemCollector;
use crate::configuration::KubeletConfiguration;
use crate::enums::ImagePullCredentialsVerificationPolicy;
use crate::field_path::FieldPath;
use crate::sections::Taint;
use crate::suggestion::suggestion;

/// The cipher suites that Go has, insecure ones included.
const CIPHERS: [&str; 24] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
];
/// P-256, P-384, P-521, X25519, and the three post-quantum hybrids.
const CURVES: [i32; 7] = [23, 24, 25, 29, 4587, 4588, 4589];

pub(super) fn validate(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    tls(kubelet, found);
    images(kubelet, found);
    tracing(kubelet, found);
    let query = "enableSystemLogQuery";
    found.needs_gate(kubelet, query, kubelet.enable_system_log_query, "NodeLogQuery");
    if kubelet.enable_system_log_query && !kubelet.enable_system_log_handler {
        found.wrong(query, "true needs enableSystemLogHandler: true as well");
    }
    let shown = &kubelet.show_hidden_metrics_for_version;
    if !["", "1.35"].contains(&shown.as_str()) {
        found.wrong(
            "showHiddenMetricsForVersion",
            format!(
                "{shown:?} is not the minor version before ours; write \"1.35\", or leave it out"
            ),
        );
    }
    for (number, taint) in kubelet.register_with_taints.iter().enumerate() {
        validate_taint(taint, &FieldPath::at("registerWithTaints").item(number), found);
    }
}

fn tls(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let bootstrap = kubelet.server_tls_bootstrap;
    found.needs_gate(kubelet, "serverTLSBootstrap", bootstrap, "RotateKubeletServerCertificate");
    for (number, suite) in kubelet.tls_cipher_suites.iter().enumerate() {
        if !CIPHERS.contains(&suite.as_str()) {
            let meant = suggestion(suite, CIPHERS);
            let message = format!("{suite:?} is no cipher suite that is known{meant}");
            found.wrong_at(FieldPath::at("tlsCipherSuites").item(number), message);
        }
    }
    for (number, curve) in kubelet.tls_curve_preferences.iter().enumerate() {
        if !CURVES.contains(curve) {
            let message = format!("{curve} is no curve that is known; write some of {CURVES:?}");
            found.wrong_at(FieldPath::at("tlsCurvePreferences").item(number), message);
        }
    }
    if kubelet.tls_cert_file.is_empty() != kubelet.tls_private_key_file.is_empty() {
        let missing =
            if kubelet.tls_cert_file.is_empty() { "tlsCertFile" } else { "tlsPrivateKeyFile" };
        found.wrong(
            missing,
            "is missing: a certificate and its key are set together, or neither is",
        );
    }
}

fn images(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let list = "preloadedImagesVerificationAllowlist";
    let policy = kubelet.image_pull_credentials_verification_policy;
    let is_used = policy == ImagePullCredentialsVerificationPolicy::NeverVerifyAllowlistedImages;
    let images = &kubelet.preloaded_images_verification_allowlist;
    if !images.is_empty() && !is_used {
        found.wrong(
            list,
            "is only looked at with imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages; set that, or leave this out",
        );
    }
    for (number, image) in images.iter().enumerate() {
        let pattern = image.strip_suffix("/*").unwrap_or(image);
        if pattern.is_empty() || pattern.contains(['*', '@', ' ']) {
            let message = format!(
                "{image:?} is no image; write it without tag and digest, with /* at its end for all below"
            );
            found.wrong_at(FieldPath::at(list).item(number), message);
        }
    }
    let gate = "KubeletEnsureSecretPulledImages";
    found.needs_gate(kubelet, list, !images.is_empty(), gate);
    let policy_is_set = policy != ImagePullCredentialsVerificationPolicy::default();
    found.needs_gate(kubelet, "imagePullCredentialsVerificationPolicy", policy_is_set, gate);
}

fn tracing(kubelet: &KubeletConfiguration, found: &mut ProblemCollector) {
    let Some(tracing) = &kubelet.tracing else { return };
    if let Some(rate) = tracing.sampling_rate_per_million {
        found.between("tracing.samplingRatePerMillion", rate, 0, 1_000_000);
    }
    let endpoint = tracing.endpoint.as_deref().unwrap_or_default();
    let scheme = endpoint.contains("//").then(|| endpoint.split(':').next().unwrap_or_default());
    if scheme.is_some_and(|scheme| !["dns", "unix", "unix-abstract"].contains(&scheme)) {
        found.wrong(
            "tracing.endpoint",
            format!("{endpoint:?} cannot be spoken to; write host:port, dns://, unix:// or unix-abstract://"),
        );
    }
}

fn validate_taint(taint: &Taint, field: &FieldPath, found: &mut ProblemCollector) {
    let Taint { key, value, effect: _, time_added } = taint;
    let is_plain =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let name = key.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || name.len() > 63 || !is_plain(name) || key.matches('/').count() > 1 {
        let message = format!("{key:?} is no name for a taint; write it like example.com/name");
        found.wrong_at(field.clone().key("key"), message);
    }
    if value.len() > 63 || !is_plain(value) {
        let message = format!(
            "{value:?} is no value for a taint; letters, digits, dots, - and _ are, up to 63"
        );
        found.wrong_at(field.clone().key("value"), message);
    }
    if time_added.is_some() {
        found.wrong_at(field.clone().key("timeAdded"), "is set by the cluster; leave it out");
    }
}
