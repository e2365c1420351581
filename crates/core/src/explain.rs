//! Why a pod is not running, not ready, over, or still there: one sentence for a person, and the next step.
//!
//! What the node reports of itself is read, family by family, from what decides most to what decides least. The first that
//! has something to say gives the explanation; what is wrong besides goes into the details.

mod cause;
mod config;
mod container;
mod container_failure;
mod context;
mod crashes;
mod ending;
mod healthy;
mod hooks;
mod images;
mod manifests;
mod order;
mod phrases;
mod probes;
mod pulls;
mod root_message;
mod runtime;
mod sandbox;
mod start;
mod start_error;
mod terminal;
mod volumes;

use serde::Serialize;

use crate::report::{NodeReport, PodReport};

pub use cause::ExplanationCause;
use context::ExplainContext;

/// Why a pod is as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The cause, for tools.
    pub cause: ExplanationCause,
    /// What is going on.
    pub sentence: String,
    /// What to do about it.
    pub next_step: String,
    /// What else there is to know, a line each.
    pub details: Vec<String>,
}

impl Explanation {
    fn new(
        cause: ExplanationCause,
        sentence: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        let (sentence, next_step) = (sentence.into(), next_step.into());
        Self { cause, sentence, next_step, details: Vec::new() }
    }

    /// The same with one more line; none, or one that says nothing, adds nothing.
    #[must_use]
    fn with(mut self, detail: Option<String>) -> Self {
        self.details.extend(detail.filter(|detail| !detail.trim().is_empty()));
        self
    }
}

/// A family of causes: what it has to say about a pod, if anything.
type Explainer = for<'a> fn(&ExplainContext<'a>) -> Option<Explanation>;

/// From what decides most to what decides least.
const EXPLAINERS: &[Explainer] = &[
    terminal::explain,
    runtime::explain,
    order::waits_for_namesake,
    ending::explain,
    volumes::explain,
    sandbox::explain,
    start::explain,
    order::explain,
    healthy::explain,
];

/// Why this pod is as it is.
pub fn explain(node: &NodeReport, pod: &PodReport) -> Explanation {
    let context = ExplainContext::new(node, pod);
    let found = EXPLAINERS.iter().find_map(|explainer| explainer(&context));
    let explanation = found.unwrap_or_else(|| healthy::on_its_way(&context));
    let broken_manifest_detail = manifests::broken_manifest_detail(&context)
        .filter(|_| explanation.cause != ExplanationCause::ManifestBroken);
    explanation.with(broken_manifest_detail)
}

/// Why there is no pod of this name, which may be given as `namespace/name` too.
pub fn explain_missing(node: &NodeReport, name: &str) -> Explanation {
    manifests::explain_missing(node, name)
}
