//! The pod's sandbox and its network: what holds all of its containers.

use super::Explanation;
use super::cause::ExplanationCause;
use super::container::ContainerSnapshot;
use super::context::ExplainContext;
use super::phrases;
use super::root_message::root_message;
use crate::report::Activity;

/// A sandbox takes no longer than this on a machine that is busy.
const LONG: u64 = 5;

/// Why nothing of the pod is started yet: the error of the worker's last try, or, while a try is under way, what the statuses of
/// the containers say of the one before.
pub(super) fn held_by<'a>(context: &ExplainContext<'a>) -> Option<&'a str> {
    let waits = |seen: &&ContainerSnapshot<'a>| {
        matches!(seen.reason(), "ContainerCreating" | "PodInitializing")
    };
    // An error of one container is told of that container.
    let all_wait = !context.containers.is_empty() && context.containers.iter().all(|it| waits(&it));
    let error = context.report.last_error.as_deref().filter(|_| all_wait);
    let mut messages = context.containers.iter().filter(waits).map(ContainerSnapshot::message);
    error.or_else(|| messages.find(|message| !message.is_empty()))
}

pub(super) fn explain(context: &ExplainContext<'_>) -> Option<Explanation> {
    let held = held_by(context).map(|message| held(&SandboxFailure::new(context, message)));
    held.or_else(|| takes_long(context)).or_else(|| unreadable(context))
}

/// What keeps all of a pod.
struct SandboxFailure<'a> {
    context: &'a ExplainContext<'a>,
    message: &'a str,
    why: String,
}

impl<'a> SandboxFailure<'a> {
    fn new(context: &'a ExplainContext<'a>, message: &'a str) -> Self {
        Self { context, message, why: root_message(message) }
    }

    fn says(&self, phrases: &str) -> bool {
        self.message.contains(phrases)
    }

    fn explain(
        &self,
        cause: ExplanationCause,
        sentence: &str,
        next: impl Into<String>,
    ) -> Explanation {
        let sentence = format!("{sentence}{}.", self.context.next_try());
        let whole = (self.why != self.message).then(|| self.message.to_owned());
        Explanation::new(cause, sentence, next).with(whole)
    }
}

fn held(it: &SandboxFailure<'_>) -> Explanation {
    if it.says("spec.runtimeClassName") {
        runtime_class(it)
    } else if it.says("spec.hostUsers") {
        user_namespace(it)
    } else if it.message.starts_with("the host name ") {
        host_name(it)
    } else if it.says(" sysctl ") {
        sysctl(it)
    } else if it.says("OOM-killed") {
        memory_limit(it)
    } else if it.message.starts_with("network is not ready: ") {
        network_not_ready(it)
    } else if it.says("failed to setup network") || it.says("plugin type=") {
        network_fails(it)
    } else {
        otherwise(it)
    }
}

fn runtime_class(it: &SandboxFailure<'_>) -> Explanation {
    let class = it.message.split('"').nth(1).unwrap_or_default();
    let sentence =
        format!("The pod asks for the runtime class {class}, which this node does not know");
    let place = it.context.manifest_path();
    let next = format!(
        "Take spec.runtimeClassName out of {place}: without an API server there are no runtime classes."
    );
    it.explain(ExplanationCause::RuntimeClass, &sentence, next)
}

fn user_namespace(it: &SandboxFailure<'_>) -> Explanation {
    let sentence =
        "The pod asks for a user namespace (spec.hostUsers is false), and this node gives none";
    let next = format!("Take spec.hostUsers out of {}.", it.context.manifest_path());
    it.explain(ExplanationCause::UserNamespace, sentence, next)
}

fn host_name(it: &SandboxFailure<'_>) -> Explanation {
    let (name, _fix) = it.why.split_once(": ").unwrap_or((&it.why, ""));
    let name = name.trim_start_matches("the ");
    let next = format!(
        "Shorten spec.hostname or spec.subdomain in {}, or take spec.setHostnameAsFQDN out of it.",
        it.context.manifest_path()
    );
    let plain = SandboxFailure { context: it.context, message: &it.why, why: it.why.clone() };
    plain.explain(ExplanationCause::HostName, &format!("The {name}"), next)
}

/// `kernel.x = "y": invalid argument`, without how the runtime went about it.
fn sysctl(it: &SandboxFailure<'_>) -> Explanation {
    let (_, rest) = it.why.split_once("sysctl ").unwrap_or(("", &it.why));
    let what = rest.split(": ").next().unwrap_or_default().trim_end_matches(" file");
    let why = rest.rsplit(": ").next().unwrap_or_default();
    let sentence = format!("A kernel setting that the pod asks for cannot be made: {what}: {why}");
    let next = format!("Correct spec.securityContext.sysctls in {}.", it.context.manifest_path());
    it.explain(ExplanationCause::Sysctl, &sentence, next)
}

fn memory_limit(it: &SandboxFailure<'_>) -> Explanation {
    let limit = |seen: &ContainerSnapshot<'_>| {
        Some(format!("{} may use {}", seen.label(), seen.memory_limit()?))
    };
    let limits: Vec<String> = it.context.containers.iter().filter_map(limit).collect();
    let sentence = format!(
        "The memory limits of the pod are too low for anything to start in it: {}",
        phrases::list(&limits)
    );
    let next = format!(
        "Raise resources.limits.memory of its containers in {}.",
        it.context.manifest_path()
    );
    it.explain(ExplanationCause::MemoryLimitTooLow, &sentence, next)
}

fn network_not_ready(it: &SandboxFailure<'_>) -> Explanation {
    let sentence = format!("The runtime has no network for pods: {}", it.why);
    let next = "Install a CNI configuration (usually in /etc/cni/net.d), or run the pod on the node's own network (spec.hostNetwork).";
    it.explain(ExplanationCause::NetworkNotReady, &sentence, next)
}

fn network_fails(it: &SandboxFailure<'_>) -> Explanation {
    let sentence = format!("The network of the pod cannot be made: {}", it.why);
    let next = "Look at the CNI configuration (usually in /etc/cni/net.d) and its plugins (usually in /opt/cni/bin).";
    it.explain(ExplanationCause::NetworkFails, &sentence, next)
}

fn otherwise(it: &SandboxFailure<'_>) -> Explanation {
    let sentence = format!("Nothing of the pod can be started: {}", it.why);
    let next = format!("Follow what is said there; all of it is in {}.", it.context.describe());
    it.explain(ExplanationCause::SandboxFails, &sentence, next)
}

fn takes_long(context: &ExplainContext<'_>) -> Option<Explanation> {
    let doing = context.report.doing.as_ref()?;
    let (what, next) = match doing.what {
        Activity::MakingSandbox => (
            "sandbox and network",
            format!("See what the runtime or its CNI plugin waits for: {}.", context.runtime_log()),
        ),
        Activity::Preparing => (
            "directories, volumes and cgroup",
            format!("See whether a file system hangs that {} mounts.", context.manifest_path()),
        ),
        _ => return None,
    };
    let since = context.human_duration(doing.since);
    let sentence =
        format!("The pod's {what} are being made, for {since} now: that should take a second.");
    let is_long = context.age(doing.since).as_secs() >= LONG;
    is_long.then(|| Explanation::new(ExplanationCause::SandboxTakesLong, sentence, next))
}

/// The agent could not even look at the pod: its status says nothing, the worker's last try does, and so may an event.
fn unreadable(context: &ExplainContext<'_>) -> Option<Explanation> {
    let known = context.containers.iter().any(|seen| seen.status.is_some());
    let event = || context.event("FailedSync", None).map(|event| event.message.as_str());
    let error = context.report.last_error.as_deref().or_else(event).filter(|_| !known)?;
    let sentence = format!("The agent cannot look at the pod: {}.", root_message(error));
    let next = format!("Correct {}, or see whether the runtime is well.", context.manifest_path());
    Some(Explanation::new(ExplanationCause::Unreadable, sentence, next))
}
