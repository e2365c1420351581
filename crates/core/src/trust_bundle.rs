//! Trust anchors in projected volumes: which ClusterTrustBundles a source selects, and the file that is made of them.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::certificates::v1beta1::ClusterTrustBundle;
use k8s_openapi::api::core::v1::{ClusterTrustBundleProjection, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::pem;
use crate::pod::PodExt;

/// The gate of trust bundles in volumes.
pub const TRUST_BUNDLE_GATE: &str = "ClusterTrustBundleProjection";

/// ClusterTrustBundles by name, shared by all pods.
pub type TrustBundles = BTreeMap<String, Arc<ClusterTrustBundle>>;

/// Why there is no file of trust anchors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustBundleError {
    /// There is no bundle of that name.
    #[error("clustertrustbundle {0:?} not found")]
    NotFound(String),
    /// No bundle of the signer is selected.
    #[error(
        "no clustertrustbundle of signer {signer:?} has the labels that labelSelector asks for"
    )]
    NoneSelected {
        /// The name of the signer.
        signer: String,
    },
    /// A bundle holds what is no certificate.
    #[error("clustertrustbundle {name:?}: {why}")]
    Malformed {
        /// The name of the bundle.
        name: String,
        /// What is wrong with it.
        why: pem::PemError,
    },
}

/// A bundle that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrustBundleName {
    /// Its name.
    pub name: String,
    /// Its signer; empty if it has none.
    pub signer: String,
}

impl TrustBundleName {
    /// Whether a pod may have it in a volume.
    pub fn is_used_by(&self, pod: &Pod) -> bool {
        projections(pod).into_iter().any(|source| match (&source.name, &source.signer_name) {
            (Some(name), _) => *name == self.name,
            // By its labels it may be selected now, or may have been before.
            (None, Some(signer)) => *signer == self.signer,
            (None, None) => false,
        })
    }
}

/// The sources of trust anchors in the volumes that containers of a pod mount.
pub fn projections(pod: &Pod) -> Vec<&ClusterTrustBundleProjection> {
    let mounted = pod.mounted_volumes();
    let volumes = pod.spec().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let used = volumes.iter().filter(|volume| mounted.contains(&volume.name));
    let projected = used.filter_map(|volume| volume.projected.as_ref());
    let sources = projected.flat_map(|projected| projected.sources.iter().flatten());
    sources.filter_map(|source| source.cluster_trust_bundle.as_ref()).collect()
}

/// The trust anchors of a source as PEM, each once, in an order that does not depend on that of the bundles. None when there are none and
/// the source is optional: the file is empty then.
///
/// # Errors
/// When a bundle is missing, or holds what is no certificate.
pub fn trust_anchors(
    source: &ClusterTrustBundleProjection,
    bundles: &TrustBundles,
) -> Result<String, TrustBundleError> {
    let selected = selected(source, bundles)?;
    let mut anchors = BTreeSet::new();
    for (name, bundle) in selected {
        let malformed = |why| TrustBundleError::Malformed { name: name.to_owned(), why };
        anchors.extend(pem::certificates(&bundle.spec.trust_bundle).map_err(malformed)?);
    }
    Ok(pem::text_of_certificates(&anchors))
}

fn selected<'a>(
    source: &ClusterTrustBundleProjection,
    bundles: &'a TrustBundles,
) -> Result<Vec<(&'a str, &'a ClusterTrustBundle)>, TrustBundleError> {
    let is_optional = source.optional == Some(true);
    if let Some(name) = &source.name {
        return match bundles.get_key_value(name) {
            Some((name, bundle)) => Ok(vec![(name, bundle)]),
            None if is_optional => Ok(Vec::new()),
            None => Err(TrustBundleError::NotFound(name.clone())),
        };
    }
    let signer = source.signer_name.as_deref().unwrap_or_default();
    let fits = |bundle: &ClusterTrustBundle| {
        bundle.spec.signer_name.as_deref() == Some(signer)
            && matches_labels(source.label_selector.as_ref(), bundle.metadata.labels.as_ref())
    };
    let fitting = bundles.iter().filter(|(_, bundle)| fits(bundle));
    let fitting: Vec<_> = fitting.map(|(name, bundle)| (name.as_str(), &**bundle)).collect();
    match fitting.is_empty() && !is_optional {
        true => Err(TrustBundleError::NoneSelected { signer: signer.to_owned() }),
        false => Ok(fitting),
    }
}

/// No selector selects nothing, and an empty one all.
fn matches_labels(
    selector: Option<&LabelSelector>,
    labels: Option<&BTreeMap<String, String>>,
) -> bool {
    let Some(selector) = selector else { return false };
    let none = BTreeMap::new();
    let labels = labels.unwrap_or(&none);
    let mut equal = selector.match_labels.iter().flatten();
    let mut rules = selector.match_expressions.iter().flatten();
    equal.all(|(key, value)| labels.get(key) == Some(value))
        && rules.all(|rule| meets(rule, labels))
}

fn meets(rule: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&rule.key);
    let is_listed = value.is_some_and(|value| rule.values.iter().flatten().any(|one| one == value));
    match rule.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        // The API server accepts no other.
        _ => false,
    }
}
