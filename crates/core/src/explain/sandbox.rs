//! The pod's sandbox and its network: what holds all of its containers.

use super::case::Case;
use super::essence::essence;
use super::seen::Seen;
use super::{Cause, Explanation};
use crate::report::Activity;

/// A sandbox takes this long on a machine that is busy.
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
    held_by(case)
        .map(|message| held(case, message))
        .or_else(|| takes_long(case))
        .or_else(|| unreadable(case))
}

fn held(case: &Case<'_>, message: &str) -> Explanation {
    let why = essence(message);
    let (again, place) = (case.again(), case.place());
    let has = |word: &str| message.contains(word);
    let (cause, sentence, next) = if let Some(class) =
        message.strip_prefix("spec.runtimeClassName: no RuntimeClass ")
    {
        let class = class.split('"').nth(1).unwrap_or_default();
        (
            Cause::RuntimeClass,
            format!("The pod asks for the runtime class {class}, which this node does not know"),
            format!(
                "Take spec.runtimeClassName out of {place}: without an API server there are no runtime classes."
            ),
        )
    } else if has("spec.hostUsers") {
        (
            Cause::UserNamespace,
            "The pod asks for a user namespace (spec.hostUsers is false), and this node gives none"
                .to_owned(),
            format!("Take spec.hostUsers out of {place}."),
        )
    } else if message.starts_with("the host name ") {
        (Cause::HostName, upper(&why), format!("Correct it in {place}."))
    } else if has(" sysctl ") {
        (
            Cause::Sysctl,
            format!("A kernel setting that the pod asks for cannot be made: {}", sysctl(&why)),
            format!("Correct spec.securityContext.sysctls in {place}."),
        )
    } else if has("OOM-killed") {
        (
            Cause::MemoryLimitTooLow,
            format!(
                "The memory limits of the pod are too low for anything to start in it: {}",
                limits(case)
            ),
            format!(
                "Raise resources.limits.memory of its containers in {place}; below some 10Mi nothing starts."
            ),
        )
    } else if message.starts_with("the runtime's network is not ready") {
        (
            Cause::NetworkNotReady,
            format!("The runtime has no network for pods: {why}"),
            "Install a CNI configuration (usually in /etc/cni/net.d), or run the pod on the node's own network (spec.hostNetwork).".to_owned(),
        )
    } else if has("failed to setup network") || has("plugin type=") {
        (
            Cause::NetworkFails,
            format!("The network of the pod cannot be made: {why}"),
            "Look at the CNI configuration (usually in /etc/cni/net.d) and its plugins (usually in /opt/cni/bin).".to_owned(),
        )
    } else {
        (
            Cause::SandboxFails,
            format!("Nothing of the pod can be started: {why}"),
            format!("Follow what is said there; all that happened is in {}.", case.describe()),
        )
    };
    Explanation::new(cause, format!("{sentence}{again}."), next).with(Some(message.to_owned()))
}

/// `kernel.x = "y": invalid argument`, without how the runtime went about it.
fn sysctl(why: &str) -> String {
    let start = why.find("sysctl ").map(|at| at + "sysctl ".len()).unwrap_or_default();
    let rest = &why[start..];
    let what = rest.split(": ").next().unwrap_or_default().trim_end_matches(" file");
    format!("{what}: {}", rest.rsplit(": ").next().unwrap_or_default())
}

fn limits(case: &Case<'_>) -> String {
    let limit = |seen: &Seen<'_>| {
        let limits = seen.spec.resources.as_ref()?.limits.as_ref()?;
        Some(format!("{} may use {}", seen.who(), limits.get("memory")?.0))
    };
    super::words::list(&case.containers.iter().filter_map(limit).collect::<Vec<_>>())
}

fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn takes_long(case: &Case<'_>) -> Option<Explanation> {
    let doing = case.report.doing.as_ref()?;
    let age = case.age(doing.since).as_secs();
    let what = match doing.what {
        Activity::MakingSandbox => "sandbox and network",
        Activity::Preparing => "directories, volumes and cgroup",
        _ => return None,
    };
    if age < LONG {
        return None;
    }
    let since = case.lasting(doing.since);
    let sentence =
        format!("The pod's {what} are being made, for {since} now: that should take a second.");
    let next = match doing.what {
        Activity::MakingSandbox => {
            "See what the runtime waits for (its log), and whether the CNI plugin hangs.".to_owned()
        }
        _ => format!("See whether a file system hangs that {} mounts.", case.place()),
    };
    Some(Explanation::new(Cause::SandboxTakesLong, sentence, next))
}

/// The agent could not even look at the pod: its status says nothing, an event does.
fn unreadable(case: &Case<'_>) -> Option<Explanation> {
    let known = case.containers.iter().any(|seen| seen.status.is_some());
    let event = case.event("FailedSync", None).filter(|_| !known)?;
    let sentence = format!("The agent cannot look at the pod: {}.", essence(&event.message));
    let next = format!("Correct {}, or see whether the runtime is well.", case.place());
    Some(Explanation::new(Cause::Unreadable, sentence, next))
}
