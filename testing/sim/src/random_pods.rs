//! Draws random pods: small ones, with scripts whose result is known.

use k8s_openapi::api::core::v1::{
    Container, ExecAction, Lifecycle, LifecycleHandler, Pod, PodSpec, SleepAction,
};
use oarsman_world::rng::{Probability, Rng};

use crate::{random_probes, random_volumes};

/// An image that is on the node from the beginning.
pub(crate) const PRESENT: &str = "world/script:1";
/// Another image that is on the node from the beginning: what a container's image is edited to.
pub(crate) const PRESENT_TOO: &str = "world/script:2";
/// An image in a registry.
pub(crate) const PULLABLE: &str = "world/far:1";
/// An image that does not exist.
pub(crate) const MISSING: &str = "world/nowhere:1";

/// Scripts of containers that run until they are stopped, or end by themselves.
const LASTING: &[&[&str]] = &[
    &["forever"],
    &["on-term:ignore", "forever"],
    &["on-term:sleep:3s,exit:0", "forever"],
    &["on-term:exit:7", "forever"],
];
const ENDING: &[&[&str]] = &[
    &["exit:0"],
    &["exit:1"],
    &["sleep:5s", "exit:0"],
    &["sleep:20s", "exit:3"],
    &["sleep:90s", "exit:0"],
];

/// Scripts and sleeps of hooks; no script is in both lists.
const PRE_STOP: &[&[&str]] = &[
    &["sleep:1s"],
    &["sleep:10s", "out:bye"],
    &["forever"],
    &["exit:1"],
    &["rest", "0"],
    &["rest", "2"],
];
const POST_START: &[&[&str]] = &[&["sleep:2s", "out:hello"], &["out:hello"], &["rest", "3"]];
/// The script of a hook that always fails.
const FAILING: &[&str] = &["err:no", "exit:3"];

/// A random one of these.
pub(crate) fn pick<'a, T: ?Sized>(rng: &mut Rng, of: &[&'a T]) -> &'a T {
    let index = rng.below(of.len() as u64);
    of[usize::try_from(index).unwrap_or_default()]
}

/// A pod of that name.
pub(crate) fn pod(rng: &mut Rng, name: &str, uid: &str) -> Pod {
    let restart_policy = pick(rng, &["Always", "Always", "OnFailure", "Never"]);
    let init = (0..rng.below(3)).map(|number| init(rng, number)).collect::<Vec<_>>();
    let regular = (0..=rng.below(2)).map(|number| regular(rng, number, restart_policy));
    let mut pod = Pod {
        spec: Some(PodSpec {
            containers: regular.collect(),
            init_containers: Some(init).filter(|init| !init.is_empty()),
            restart_policy: Some(restart_policy.to_owned()),
            termination_grace_period_seconds: Some(pick(rng, &[&2, &5, &30]).to_owned()),
            ..PodSpec::default()
        }),
        ..Pod::default()
    };
    if rng.happens(Probability::percent(5)) {
        pod.spec.get_or_insert_default().active_deadline_seconds = Some(60);
    }
    if rng.happens(Probability::percent(10)) {
        pod.spec.get_or_insert_default().host_network = Some(true);
    }
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.metadata.uid = Some(uid.to_owned());
    random_volumes::add(&mut rng.fork(&format!("volumes of {uid}")), &mut pod);
    random_probes::add(&mut rng.fork(&format!("probes of {uid}")), &mut pod);
    pod
}

fn regular(rng: &mut Rng, number: u64, restart_policy: &str) -> Container {
    // A pod with restart policy Always is mostly one that keeps running.
    let ends = if restart_policy == "Always" {
        Probability::percent(25)
    } else {
        Probability::percent(75)
    };
    let script = if rng.happens(ends) { pick(rng, ENDING) } else { pick(rng, LASTING) };
    let lifecycle = lifecycle(rng);
    Container { lifecycle, ..container(rng, &format!("c{number}"), script) }
}

/// Hooks for one container in two, so that they are combined with all other actions.
fn lifecycle(rng: &mut Rng) -> Option<Lifecycle> {
    let pre_stop = hook(rng, Probability::percent(35), PRE_STOP);
    let post_start = hook(rng, Probability::percent(20), POST_START);
    let doomed = hook(rng, Probability::percent(3), &[FAILING]);
    let post_start = doomed.or(post_start);
    let any = pre_stop.is_some() || post_start.is_some();
    any.then(|| Lifecycle { pre_stop, post_start, ..Lifecycle::default() })
}

/// A hook with a command, or with a sleep.
fn hook(rng: &mut Rng, chance: Probability, of: &[&[&str]]) -> Option<LifecycleHandler> {
    let drawn = rng.happens(chance).then(|| pick(rng, of))?;
    let mut hook = LifecycleHandler::default();
    match drawn {
        ["rest", seconds] => {
            let seconds = seconds.parse().unwrap_or_default();
            hook.sleep = Some(SleepAction { seconds });
        }
        script => {
            let command = ["/script"].iter().chain(script).map(|&step| step.to_owned());
            hook.exec = Some(ExecAction { command: Some(command.collect()) });
        }
    }
    Some(hook)
}

/// Whether a container's postStart hook always fails.
pub(crate) fn post_start_always_fails(spec: &Container) -> bool {
    let hook = spec.lifecycle.as_ref().and_then(|hooks| hooks.post_start.as_ref());
    let command = hook.and_then(|hook| hook.exec.as_ref()?.command.as_ref());
    command.is_some_and(|command| command.iter().skip(1).eq(FAILING))
}

fn init(rng: &mut Rng, number: u64) -> Container {
    if rng.happens(Probability::percent(30)) {
        let script = pick(rng, LASTING);
        let mut sidecar = container(rng, &format!("s{number}"), script);
        sidecar.restart_policy = Some("Always".to_owned());
        sidecar.lifecycle = lifecycle(rng);
        return sidecar;
    }
    let script: &[&str] = pick(rng, &[&["exit:0"][..], &["sleep:3s", "exit:0"], &["exit:0"]]);
    container(rng, &format!("i{number}"), script)
}

fn container(rng: &mut Rng, name: &str, script: &[&str]) -> Container {
    let image = pick(rng, &[PRESENT, PRESENT, PRESENT, PRESENT, PULLABLE, PULLABLE, MISSING]);
    let image =
        if image == MISSING && !rng.happens(Probability::percent(20)) { PRESENT } else { image };
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some(pick(rng, &["IfNotPresent", "IfNotPresent", "Always"]).to_owned()),
        args: Some(script.iter().map(|&step| step.to_owned()).collect()),
        ..Container::default()
    }
}
