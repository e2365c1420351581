//! Merges the objects of all places and checks that no name is used twice and no reference is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use oarsman_core::config::Lookup;
use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::references::{Kind, Reference, references};
use oarsman_core::static_pod::{Given, check_references};

use super::everything::{Object, Thing};
use crate::sources::line::Remark;

/// The pods, and the objects that they refer to.
#[derive(Clone, PartialEq)]
pub(super) struct Contents {
    pub(super) pods: Vec<Pod>,
    pub(super) objects: Lookup,
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods: Vec<FullName> = self.pods.iter().map(PodExt::full_name).collect();
        f.debug_struct("Contents").field("pods", &pods).field("objects", &self.objects).finish()
    }
}

/// Merges the objects of all places.
pub(super) fn union<'a>(
    things: impl IntoIterator<Item = &'a Thing>,
) -> Result<Contents, Vec<Remark>> {
    let things: Vec<&Thing> = things.into_iter().collect();
    let objects = objects(&things);
    let mut wrong = namesakes(&things);
    let mut pods = Vec::new();
    for (place, pod) in things.iter().filter_map(|thing| pod(thing)) {
        wrong.extend(unmet(pod, &objects).into_iter().map(|why| Remark::new(place, why)));
        pods.push(pod.clone());
    }
    if wrong.is_empty() { Ok(Contents { pods, objects }) } else { Err(wrong) }
}

fn pod(thing: &Thing) -> Option<(&str, &Pod)> {
    thing.object.pod().map(|pod| (thing.place.as_str(), pod))
}

fn objects(things: &[&Thing]) -> Lookup {
    let mut lookup = Lookup::default();
    for thing in things {
        let name = thing.object.full_name();
        match &thing.object {
            Object::Pod(_) => {}
            Object::ConfigMap(map) => drop(lookup.config_maps.insert(name, map.clone())),
            Object::Secret(secret) => drop(lookup.secrets.insert(name, secret.clone())),
        }
    }
    lookup
}

/// Objects of one kind with the same name, and pods with the same UID.
fn namesakes(things: &[&Thing]) -> Vec<Remark> {
    let (mut names, mut uids) = (BTreeMap::new(), BTreeMap::new());
    let mut wrong = Vec::new();
    for thing in things {
        let (kind, name) = (thing.object.kind(), thing.object.full_name());
        let namesake = names.insert((kind, name.clone()), &thing.place);
        let twin = pod(thing).and_then(|(place, pod)| uids.insert(pod.uid(), place));
        if let Some(other) = namesake {
            let FullName { name, namespace } = name;
            wrong.push(Remark::new(&thing.place, format!(
                "{kind} {name:?} of namespace {namespace:?} is in {other}, too: give one of the two another name"
            )));
        } else if let Some(other) = twin {
            let why = format!("the pod in {other} has the same metadata.uid: take the uid out");
            wrong.push(Remark::new(&thing.place, why));
        }
    }
    wrong
}

/// References of a pod that are not satisfied.
fn unmet(pod: &Pod, objects: &Lookup) -> Vec<String> {
    let needed = references(pod).into_iter().filter(|reference| !reference.optional);
    let namespace = pod.full_name().namespace;
    let mut missing = BTreeSet::new();
    let mut told = BTreeSet::new();
    let mut unmet = Vec::new();
    for reference in needed {
        let object = (reference.kind, reference.name.clone());
        let why = match objects.keys(reference.kind, &namespace, &reference.name) {
            None if missing.insert(object) => Some(not_given(&reference, &namespace, objects)),
            None => None,
            Some(keys) => no_key(&reference, &keys),
        };
        unmet.extend(why.filter(|why| told.insert(why.clone())));
    }
    unmet.extend(of_a_cluster(pod));
    unmet
}

fn not_given(reference: &Reference, namespace: &str, objects: &Lookup) -> String {
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

fn no_key(reference: &Reference, keys: &[String]) -> Option<String> {
    let Reference { kind, name, .. } = reference;
    let key = reference.key.as_ref().filter(|key| !keys.contains(key))?;
    let kind = kind.as_str();
    let there = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
    Some(format!(
        "the pod refers to key {key:?} of {kind} {name:?}, which has {there}: correct the key, or mark the reference optional"
    ))
}

/// A reference to an object that only a cluster has.
fn of_a_cluster(pod: &Pod) -> Option<String> {
    let named = |kind: Kind| {
        let all = references(pod).into_iter().filter(move |reference| reference.kind == kind);
        all.map(|reference| reference.name).collect()
    };
    let given = Given { secrets: named(Kind::Secret), config_maps: named(Kind::ConfigMap) };
    let refused = check_references(pod, &given).err()?;
    let (what, field) = match refused.resource {
        "serviceaccounts" => ("a service account", "spec.serviceAccountName"),
        "persistentvolumeclaims" => ("a volume claim", "the persistentVolumeClaim"),
        "resourceclaims" => ("a resource claim", "spec.resourceClaims"),
        other => (other, "it"),
    };
    Some(format!("the pod refers to {what}, which only a cluster has: take {field} out of the pod"))
}
