//! Merges the objects of all places and checks that no name is used twice and no reference is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::cri_spec::Lookup;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::references::{ObjectKind, Reference, references};
use oarsman_core::static_pod::{ProvidedObjects, check_references};

use super::object_reader::{LocatedObject, ParsedObject};
use crate::sources::message::ManifestProblem;

/// The pods, and the objects that they refer to.
#[derive(Clone, PartialEq)]
pub(super) struct MergedObjects {
    pub(super) pods: Vec<Pod>,
    pub(super) objects: Lookup,
}

impl fmt::Debug for MergedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods: Vec<FullName> = self.pods.iter().map(PodExt::full_name).collect();
        f.debug_struct("Contents").field("pods", &pods).field("objects", &self.objects).finish()
    }
}

/// Merges the objects of all places.
pub(super) fn union<'a>(
    located_objects: impl IntoIterator<Item = &'a LocatedObject>,
) -> Result<MergedObjects, Vec<ManifestProblem>> {
    let located_objects: Vec<&LocatedObject> = located_objects.into_iter().collect();
    let objects = objects(&located_objects);
    let mut wrong = duplicates(&located_objects);
    let mut pods = Vec::new();
    for (place, pod) in located_objects.iter().filter_map(|located| pod(located)) {
        wrong.extend(
            missing_references(pod, &objects)
                .into_iter()
                .map(|why| ManifestProblem::new(place, why)),
        );
        pods.push(pod.clone());
    }
    if wrong.is_empty() { Ok(MergedObjects { pods, objects }) } else { Err(wrong) }
}

fn pod(located: &LocatedObject) -> Option<(&str, &Pod)> {
    located.object.pod().map(|pod| (located.place.as_str(), pod))
}

fn objects(located_objects: &[&LocatedObject]) -> Lookup {
    let mut lookup = Lookup::default();
    for located in located_objects {
        let name = located.object.full_name();
        match &located.object {
            ParsedObject::Pod(_) => {}
            ParsedObject::ConfigMap(map) => {
                drop(lookup.config_maps.insert(name, Arc::new(map.clone())));
            }
            ParsedObject::Secret(secret) => {
                drop(lookup.secrets.insert(name, Arc::new(secret.clone())));
            }
        }
    }
    lookup
}

/// Objects of one kind with the same name, and pods with the same UID.
fn duplicates(located_objects: &[&LocatedObject]) -> Vec<ManifestProblem> {
    let (mut names, mut uids) = (BTreeMap::new(), BTreeMap::new());
    let mut wrong = Vec::new();
    for located in located_objects {
        let (kind, name) = (located.object.kind(), located.object.full_name());
        let namesake = names.insert((kind, name.clone()), &located.place);
        let twin = pod(located).and_then(|(place, pod)| uids.insert(pod.uid(), place));
        if let Some(other) = namesake {
            let FullName { name, namespace } = name;
            wrong.push(ManifestProblem::new(&located.place, format!(
                "{kind} {name:?} of namespace {namespace:?} is in {other}, too: give one of the two another name"
            )));
        } else if let Some(other) = twin {
            let why = format!("the pod in {other} has the same metadata.uid: take the uid out");
            wrong.push(ManifestProblem::new(&located.place, why));
        }
    }
    wrong
}

/// References of a pod that are not satisfied.
fn missing_references(pod: &Pod, objects: &Lookup) -> Vec<String> {
    let needed = references(pod).into_iter().filter(|reference| !reference.optional);
    let namespace = pod.full_name().namespace;
    let mut missing = BTreeSet::new();
    let mut told = BTreeSet::new();
    let mut missing_references = Vec::new();
    for reference in needed {
        let object = (reference.kind, reference.name.clone());
        let why = match objects.keys(reference.kind, &namespace, &reference.name) {
            None if missing.insert(object) => Some(missing_object(&reference, &namespace, objects)),
            None => None,
            Some(keys) => missing_key(&reference, &keys),
        };
        missing_references.extend(why.filter(|why| told.insert(why.clone())));
    }
    missing_references.extend(cluster_only_reference(pod));
    missing_references
}

fn missing_object(reference: &Reference, namespace: &str, objects: &Lookup) -> String {
    let Reference { kind, name, .. } = reference;
    let (kind_name, elsewhere) = (kind.as_str(), objects.namespaces_of(*kind, name));
    match elsewhere.first() {
        Some(other) => format!(
            "the pod is in namespace {namespace:?} and {kind_name} {name:?} in {other:?}: put both into one namespace"
        ),
        None => format!(
            "the pod refers to {kind_name} {name:?}, which is not given: add it to the file, or mark the reference optional"
        ),
    }
}

fn missing_key(reference: &Reference, keys: &[String]) -> Option<String> {
    let Reference { kind, name, .. } = reference;
    let key = reference.key.as_ref().filter(|key| !keys.contains(key))?;
    let kind = kind.as_str();
    let there = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
    Some(format!(
        "the pod refers to key {key:?} of {kind} {name:?}, which has {there}: correct the key, or mark the reference optional"
    ))
}

/// A reference to an object that only a cluster has.
fn cluster_only_reference(pod: &Pod) -> Option<String> {
    let named = |kind: ObjectKind| {
        let all = references(pod).into_iter().filter(move |reference| reference.kind == kind);
        all.map(|reference| reference.name).collect()
    };
    let given = ProvidedObjects {
        secrets: named(ObjectKind::Secret),
        config_maps: named(ObjectKind::ConfigMap),
    };
    let refused = check_references(pod, &given).err()?;
    let (what, field) = match refused.resource {
        "serviceaccounts" => ("a service account", "spec.serviceAccountName"),
        "persistentvolumeclaims" => ("a volume claim", "the persistentVolumeClaim"),
        "resourceclaims" => ("a resource claim", "spec.resourceClaims"),
        other => (other, "it"),
    };
    Some(format!("the pod refers to {what}, which only a cluster has: take {field} out of the pod"))
}
