//! Several sources in one volume.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    ClusterTrustBundleProjection, KeyToPath, PodCertificateProjection, ProjectedVolumeSource,
    ServiceAccountTokenProjection, VolumeProjection,
};

use super::local;
use crate::api::error::Errors;
use crate::api::path::Path;
use crate::api::validate::{labels, metadata, names, paths, signers};

const TOKEN_SECONDS_LEAST: i64 = 600;
const TOKEN_SECONDS_MOST: i64 = 1 << 32;
const CERTIFICATE_SECONDS_LEAST: i32 = 3600;
const CERTIFICATE_SECONDS_MOST: i32 = 91 * 86400;
/// Kubernetes' own signers sign for a day.
const KUBERNETES_CERTIFICATE_SECONDS_MOST: i32 = 86400;
const KEY_TYPES: [&str; 6] =
    ["ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096"];

pub(super) fn check(at: &Path, volume: &ProjectedVolumeSource, errors: &mut Errors) {
    paths::check_mode(&at.child("defaultMode"), volume.default_mode, errors);
    let mut taken = Taken { volume: at, paths: BTreeSet::new() };
    for (i, source) in volume.sources.iter().flatten().enumerate() {
        check_source(&at.child("sources").index(i), source, &mut taken, errors);
    }
}

/// Paths in the volume that are taken, and the volume to blame when one is taken twice.
struct Taken<'a> {
    volume: &'a Path,
    paths: BTreeSet<&'a str>,
}

impl<'a> Taken<'a> {
    fn take(&mut self, path: &'a str, errors: &mut Errors) {
        if !self.paths.insert(path) {
            errors.invalid(self.volume, path, "two sources want this path");
        }
    }

    /// A file without a path is wrong already.
    fn take_file(&mut self, path: &'a str, errors: &mut Errors) {
        if !path.is_empty() {
            self.take(path, errors);
        }
    }
}

fn check_source<'a>(
    at: &Path,
    source: &'a VolumeProjection,
    taken: &mut Taken<'a>,
    errors: &mut Errors,
) {
    check_files(at, source, taken, errors);
    check_credentials(at, source, taken, errors);
    let kinds = [
        source.secret.is_some(),
        source.config_map.is_some(),
        source.downward_api.is_some(),
        source.service_account_token.is_some(),
        source.cluster_trust_bundle.is_some(),
        source.pod_certificate.is_some(),
    ];
    if kinds.into_iter().filter(|set| *set).count() > 1 {
        errors.forbidden(at, "every source stands in an item of its own");
    }
}

fn check_files<'a>(
    at: &Path,
    source: &'a VolumeProjection,
    taken: &mut Taken<'a>,
    errors: &mut Errors,
) {
    if let Some(secret) = &source.secret {
        check_named(&at.child("secret"), &secret.name, secret.items.as_deref(), taken, errors);
    }
    if let Some(config) = &source.config_map {
        check_named(&at.child("configMap"), &config.name, config.items.as_deref(), taken, errors);
    }
    let downward = source.downward_api.iter().flat_map(|downward| downward.items.iter());
    for file in downward.flatten() {
        local::check_downward_file(&at.child("downwardAPI"), file, errors);
        taken.take_file(&file.path, errors);
    }
}

fn check_credentials<'a>(
    at: &Path,
    source: &'a VolumeProjection,
    taken: &mut Taken<'a>,
    errors: &mut Errors,
) {
    if let Some(token) = &source.service_account_token {
        check_token(&at.child("serviceAccountToken"), token, taken.volume, errors);
    }
    if let Some(bundle) = &source.cluster_trust_bundle {
        let at = at.child("clusterTrustBundle");
        check_bundle(&at, bundle, errors);
        errors.check_present(&at.child("path"), &bundle.path);
        paths::check_unreserved(&at.child("path"), &bundle.path, errors);
        taken.take(&bundle.path, errors);
    }
    if let Some(certificate) = &source.pod_certificate {
        check_certificate(&at.child("podCertificate"), certificate, taken, errors);
    }
}

fn check_named<'a>(
    at: &Path,
    name: &str,
    items: Option<&'a [KeyToPath]>,
    taken: &mut Taken<'a>,
    errors: &mut Errors,
) {
    errors.check_present(&at.child("name"), name);
    local::check_items(&at.child("items"), items, errors);
    for item in items.into_iter().flatten() {
        taken.take_file(&item.path, errors);
    }
}

/// The API server reports a token's path as one of the volume.
fn check_token(
    at: &Path,
    token: &ServiceAccountTokenProjection,
    volume: &Path,
    errors: &mut Errors,
) {
    if let Some(seconds) = token.expiration_seconds {
        for complaint in names::in_range(seconds, TOKEN_SECONDS_LEAST, TOKEN_SECONDS_MOST) {
            errors.invalid(&at.child("expirationSeconds"), seconds, complaint);
        }
    }
    errors.check_present(&volume.child("path"), &token.path);
    paths::check_unreserved(&volume.child("path"), &token.path, errors);
}

/// A bundle is one by its name, or all of a signer that have certain labels.
fn check_bundle(at: &Path, bundle: &ClusterTrustBundleProjection, errors: &mut Errors) {
    let selector = bundle.label_selector.as_ref();
    match (&bundle.name, &bundle.signer_name) {
        (Some(name), None) => {
            errors.check_present(&at.child("name"), name);
            errors.invalid_for(&at.child("name"), name, signers::bundle_name(name));
            if selector.is_some() {
                errors.invalid(&at.child("labelSelector"), name.as_str(), "goes with signerName");
            }
        }
        (None, Some(signer)) => {
            errors.check_present(&at.child("signerName"), signer);
            signers::check(&at.child("signerName"), signer, errors);
            labels::check_selector(&at.child("labelSelector"), selector, errors);
        }
        (Some(name), Some(_)) => {
            errors.invalid(at, name.as_str(), "say one of name and signerName");
        }
        (None, None) => errors.required(at, "say name or signerName"),
    }
}

fn check_certificate<'a>(
    at: &Path,
    certificate: &'a PodCertificateProjection,
    taken: &mut Taken<'a>,
    errors: &mut Errors,
) {
    signers::check(&at.child("signerName"), &certificate.signer_name, errors);
    check_user_annotations(&at.child("userAnnotations"), certificate, errors);
    errors.check_supported(&at.child("keyType"), &certificate.key_type, &KEY_TYPES);
    check_certificate_age(&at.child("maxExpirationSeconds"), certificate, errors);
    let files = [
        ("credentialBundlePath", &certificate.credential_bundle_path),
        ("keyPath", &certificate.key_path),
        ("certificateChainPath", &certificate.certificate_chain_path),
    ];
    if files.iter().all(|(_, path)| path.is_none()) {
        errors.required(at, "say where to put it");
    }
    for (field, path) in files {
        if let Some(path) = path {
            paths::check_unreserved(&at.child(field), path, errors);
            taken.take(path, errors);
        }
    }
}

fn check_certificate_age(at: &Path, certificate: &PodCertificateProjection, errors: &mut Errors) {
    let Some(seconds) = certificate.max_expiration_seconds else { return };
    let most = if signers::is_kubernetes(&certificate.signer_name) {
        KUBERNETES_CERTIFICATE_SECONDS_MOST
    } else {
        CERTIFICATE_SECONDS_MOST
    };
    let complaints = names::in_range(seconds.into(), CERTIFICATE_SECONDS_LEAST.into(), most.into());
    for complaint in complaints {
        errors.invalid(at, seconds, complaint);
    }
}

fn check_user_annotations(at: &Path, certificate: &PodCertificateProjection, errors: &mut Errors) {
    let annotations = certificate.user_annotations.as_ref();
    for key in annotations.into_iter().flatten().map(|(key, _)| key.to_lowercase()) {
        let complaints = names::qualified_name(&key);
        if key.is_empty() {
            errors.required(at, "");
        } else if complaints.is_empty() && !key.contains('/') {
            errors.invalid(at, key, "needs a domain before it, as in example.com/key");
        } else {
            errors.invalid_for(at, &key, complaints);
        }
    }
    metadata::check_annotations_size(at, annotations, errors);
}
