//! Manifests that cannot be read, and pods that do not exist.

use super::context::ExplainContext;
use super::phrases;
use super::{Explanation, ExplanationCause};
use crate::pod::PodExt;
use crate::report::{BrokenManifest, NodeReport};

/// A pod whose manifest was broken since.
pub(super) fn runs_old_manifest(context: &ExplainContext<'_>) -> Option<Explanation> {
    let broken = broken(context)?;
    let sentence = format!(
        "The pod runs as its manifest was before; what {} holds now is not understood: {}.",
        broken.place,
        end(&broken.why)
    );
    let next = format!("Correct {}; until then the pod goes on as it is.", broken.place);
    Some(Explanation::new(ExplanationCause::ManifestBroken, sentence, next))
}

/// The same as a line beside another cause.
pub(super) fn broken_manifest_detail(context: &ExplainContext<'_>) -> Option<String> {
    let broken = broken(context)?;
    Some(format!("{} is not understood any more: {}.", broken.place, end(&broken.why)))
}

fn broken<'a>(context: &ExplainContext<'a>) -> Option<&'a BrokenManifest> {
    let place = context.report.place.as_deref()?;
    context.node.broken.iter().find(|broken| broken.place == place)
}

fn end(why: &str) -> &str {
    why.trim_end_matches('.')
}

/// Why there is no pod of that name.
pub(super) fn explain_missing(node: &NodeReport, name: &str) -> Explanation {
    let of_manifest = node.broken.iter().find(|broken| is_called(node, &broken.place, name));
    of_manifest.map(no_pod).or_else(|| gone(node, name)).unwrap_or_else(|| unknown_pod(node, name))
}

/// A file is mostly called like its pod.
fn is_called(node: &NodeReport, place: &str, name: &str) -> bool {
    let file = place.rsplit('/').next().unwrap_or(place);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let name = name.rsplit('/').next().unwrap_or(name);
    stem == name || name.strip_suffix(&format!("-{}", node.node)) == Some(stem)
}

fn no_pod(broken: &BrokenManifest) -> Explanation {
    let sentence = format!("No pod comes of {}: {}.", broken.place, end(&broken.why));
    let next = format!("Correct {}; it is read again when it changes.", broken.place);
    Explanation::new(ExplanationCause::NoPodOfManifest, sentence, next)
}

fn gone(node: &NodeReport, name: &str) -> Option<Explanation> {
    let (namespace, short) = name.split_once('/').unwrap_or(("default", name));
    let names = [short.to_owned(), format!("{short}-{}", node.node)];
    let of_pod =
        node.events.iter().filter(|it| it.namespace == namespace && names.contains(&it.pod));
    let last = of_pod.max_by_key(|event| event.last)?;
    let ago = phrases::human_duration(crate::time::wall_between(last.last, node.now));
    let sentence = format!(
        "Pod {} was here and is gone; the last thing that happened to it, {ago} ago: {}.",
        last.pod,
        end(&last.message)
    );
    let next = "If it should be here, put its manifest back; `oarsman events` shows what happened."
        .to_owned();
    Some(Explanation::new(ExplanationCause::Gone, sentence, next))
}

fn unknown_pod(node: &NodeReport, name: &str) -> Explanation {
    let known: Vec<String> = node.pods.iter().map(|pod| pod.pod.full_name().name).collect();
    let there = match known.as_slice() {
        [] => "there is no pod at all".to_owned(),
        names => format!("there is {}", phrases::list(names)),
    };
    let sentence = format!("No pod is called {name} here: {there}.");
    let next =
        "Check the name (`oarsman ps`), or whether its manifest lies where this agent looks."
            .to_owned();
    let broken = node.broken.iter();
    let lines = broken.map(|it| format!("No pod comes of {}: {}.", it.place, end(&it.why)));
    let explanation = Explanation::new(ExplanationCause::NoSuchPod, sentence, next);
    lines.fold(explanation, |explanation, line| explanation.with(Some(line)))
}
