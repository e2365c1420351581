//! The pod's sandbox and its network: what holds all of its containers.

use super::Explanation;
use super::case::Case;
use super::cause::Cause;
use super::essence::essence;
use super::seen::Seen;
use super::words;
use crate::report::Activity;

/// A sandbox takes no longer than this on a machine that is busy.
const LONG: u64 = 5;

/// Why nothing of the pod is started yet, as its containers' statuses say.
pub(super) fn held_by<'a>(case: &Case<'a>) -> Option<&'a str> {
    let held = |seen: &Seen<'a>| {
        let waits = matches!(seen.reason(), "ContainerCreating" | "PodInitializing");
        Some(seen.message()).filter(|message| waits && !message.is_empty())
    };
    case.containers.iter().find_map(held)
}

pub(super) fn explain(case: &Case<'_>) -> Option<Explanation> {
    let held = held_by(case).map(|message| held(&Hold::new(case, message)));
    held.or_else(|| takes_long(case)).or_else(|| unreadable(case))
}

/// What keeps all of a pod.
struct Hold<'a> {
    case: &'a Case<'a>,
    message: &'a str,
    why: String,
}

impl<'a> Hold<'a> {
    fn new(case: &'a Case<'a>, message: &'a str) -> Self {
        Self { case, message, why: essence(message) }
    }

    fn says(&self, words: &str) -> bool {
        self.message.contains(words)
    }

    fn explain(&self, cause: Cause, sentence: &str, next: impl Into<String>) -> Explanation {
        let sentence = format!("{sentence}{}.", self.case.again());
        let whole = (self.why != self.message).then(|| self.message.to_owned());
        Explanation::new(cause, sentence, next).with(whole)
    }
}

fn held(it: &Hold<'_>) -> Explanation {
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
    } else if it.message.starts_with("the runtime's network is not ready") {
        network_not_ready(it)
    } else if it.says("failed to setup network") || it.says("plugin type=") {
        network_fails(it)
    } else {
        otherwise(it)
    }
}

fn runtime_class(it: &Hold<'_>) -> Explanation {
    let class = it.message.split('"').nth(1).unwrap_or_default();
    let sentence =
        format!("The pod asks for the runtime class {class}, which this node does not know");
    let place = it.case.place();
    let next = format!(
        "Take spec.runtimeClassName out of {place}: without an API server there are no runtime classes."
    );
    it.explain(Cause::RuntimeClass, &sentence, next)
}

fn user_namespace(it: &Hold<'_>) -> Explanation {
    let sentence =
        "The pod asks for a user namespace (spec.hostUsers is false), and this node gives none";
    let next = format!("Take spec.hostUsers out of {}.", it.case.place());
    it.explain(Cause::UserNamespace, sentence, next)
}

fn host_name(it: &Hold<'_>) -> Explanation {
    let (name, _fix) = it.why.split_once(": ").unwrap_or((&it.why, ""));
    let name = name.trim_start_matches("the ");
    let next = format!(
        "Shorten spec.hostname or spec.subdomain in {}, or take spec.setHostnameAsFQDN out of it.",
        it.case.place()
    );
    let plain = Hold { case: it.case, message: &it.why, why: it.why.clone() };
    plain.explain(Cause::HostName, &format!("The {name}"), next)
}

/// `kernel.x = "y": invalid argument`, without how the runtime went about it.
fn sysctl(it: &Hold<'_>) -> Explanation {
    let (_, rest) = it.why.split_once("sysctl ").unwrap_or(("", &it.why));
    let what = rest.split(": ").next().unwrap_or_default().trim_end_matches(" file");
    let why = rest.rsplit(": ").next().unwrap_or_default();
    let sentence = format!("A kernel setting that the pod asks for cannot be made: {what}: {why}");
    let next = format!("Correct spec.securityContext.sysctls in {}.", it.case.place());
    it.explain(Cause::Sysctl, &sentence, next)
}

fn memory_limit(it: &Hold<'_>) -> Explanation {
    let limit = |seen: &Seen<'_>| Some(format!("{} may use {}", seen.who(), seen.memory_limit()?));
    let limits: Vec<String> = it.case.containers.iter().filter_map(limit).collect();
    let sentence = format!(
        "The memory limits of the pod are too low for anything to start in it: {}",
        words::list(&limits)
    );
    let next = format!("Raise resources.limits.memory of its containers in {}.", it.case.place());
    it.explain(Cause::MemoryLimitTooLow, &sentence, next)
}

fn network_not_ready(it: &Hold<'_>) -> Explanation {
    let sentence = format!("The runtime has no network for pods: {}", it.why);
    let next = "Install a CNI configuration (usually in /etc/cni/net.d), or run the pod on the node's own network (spec.hostNetwork).";
    it.explain(Cause::NetworkNotReady, &sentence, next)
}

fn network_fails(it: &Hold<'_>) -> Explanation {
    let sentence = format!("The network of the pod cannot be made: {}", it.why);
    let next = "Look at the CNI configuration (usually in /etc/cni/net.d) and its plugins (usually in /opt/cni/bin).";
    it.explain(Cause::NetworkFails, &sentence, next)
}

fn otherwise(it: &Hold<'_>) -> Explanation {
    let sentence = format!("Nothing of the pod can be started: {}", it.why);
    let next = format!("Follow what is said there; all of it is in {}.", it.case.describe());
    it.explain(Cause::SandboxFails, &sentence, next)
}

fn takes_long(case: &Case<'_>) -> Option<Explanation> {
    let doing = case.report.doing.as_ref()?;
    let (what, next) = match doing.what {
        Activity::MakingSandbox => (
            "sandbox and network",
            format!("See what the runtime or its CNI plugin waits for: {}.", case.runtime_log()),
        ),
        Activity::Preparing => (
            "directories, volumes and cgroup",
            format!("See whether a file system hangs that {} mounts.", case.place()),
        ),
        _ => return None,
    };
    let since = case.lasting(doing.since);
    let sentence =
        format!("The pod's {what} are being made, for {since} now: that should take a second.");
    let is_long = case.age(doing.since).as_secs() >= LONG;
    is_long.then(|| Explanation::new(Cause::SandboxTakesLong, sentence, next))
}

/// The agent could not even look at the pod: its status says nothing, an event does.
fn unreadable(case: &Case<'_>) -> Option<Explanation> {
    let known = case.containers.iter().any(|seen| seen.status.is_some());
    let event = case.event("FailedSync", None).filter(|_| !known)?;
    let sentence = format!("The agent cannot look at the pod: {}.", essence(&event.message));
    let next = format!("Correct {}, or see whether the runtime is well.", case.place());
    Some(Explanation::new(Cause::Unreadable, sentence, next))
}
