//! Names of certificate signers, and of the trust bundles they publish.

use super::names::{self, NameErrors};
use crate::api::error::Errors;
use crate::api::path::Path;

const DOMAIN_MAX: usize = 253;
const NAME_MAX: usize = DOMAIN_MAX + 1 + 63 + 1 + 253;

/// Whether the signer is one of Kubernetes' own.
pub(super) fn is_kubernetes(signer: &str) -> bool {
    let (host, _) = signer.split_once('/').unwrap_or((signer, ""));
    host == "kubernetes.io" || host.ends_with(".kubernetes.io")
}

/// The name of a signer: `example.com/name`.
pub(super) fn check(at: &Path, signer: &str, errors: &mut Errors) {
    if signer.is_empty() {
        return errors.required(at, "");
    }
    let Some((domain, name)) = signer.split_once('/').filter(|(_, name)| !name.contains('/'))
    else {
        return errors.invalid(at, signer, "is a domain and a name, as in example.com/signer");
    };
    if domain.len() > DOMAIN_MAX {
        errors.too_long(at, DOMAIN_MAX);
    }
    check_labels(at, domain, names::dns_label, errors);
    if !domain.contains('.') {
        errors.invalid(at, domain, "the domain has at least two parts, as in example.com");
    }
    check_labels(at, name, names::dns_subdomain, errors);
    if signer.len() > NAME_MAX {
        errors.too_long(at, NAME_MAX);
    }
}

/// Complains about the first part that is wrong; the others are wrong in the same way, mostly.
fn check_labels(at: &Path, text: &str, form: fn(&str) -> NameErrors, errors: &mut Errors) {
    let complaints = text.split('.').map(form).find(|complaints| !complaints.is_empty());
    errors.invalid_for(at, text, complaints.unwrap_or_default());
}

/// The name of a bundle of trust; one of a signer has the signer's name before it.
pub(super) fn bundle_name(name: &str) -> NameErrors {
    let Some((signer, _)) = name.rsplit_once(':') else { return names::dns_subdomain(name) };
    if signer.is_empty() {
        return vec!["has a ':' but no signer before it".to_owned()];
    }
    names::dns_subdomain(&name[signer.len() + 1..])
}
