//! Drawing pods from the dice: small ones, with scripts whose end is known.

use k8s_openapi::api::core::v1::{
    Container, ExecAction, Lifecycle, LifecycleHandler, Pod, PodSpec, SleepAction,
};
use oarsman_world::dice::{Chance, Dice};

/// On the node from the beginning.
pub(crate) const PRESENT: &str = "world/actor:1";
/// On the node from the beginning, and another: what a container's image is edited to.
pub(crate) const PRESENT_TOO: &str = "world/actor:2";
/// In a registry.
pub(crate) const PULLABLE: &str = "world/far:1";
/// Nowhere.
pub(crate) const MISSING: &str = "world/nowhere:1";

/// What a container does when nobody stops it.
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

/// What hooks do: scripts of commands, none of them in both lists, and rests.
const PRE_STOP: &[&[&str]] = &[
    &["sleep:1s"],
    &["sleep:10s", "out:bye"],
    &["forever"],
    &["exit:1"],
    &["rest", "0"],
    &["rest", "2"],
];
const POST_START: &[&[&str]] = &[&["sleep:2s", "out:hello"], &["out:hello"], &["rest", "3"]];
/// What a hook does that can only fail.
const FAILING: &[&str] = &["err:no", "exit:3"];

/// One of these.
pub(crate) fn pick<'a, T: ?Sized>(dice: &mut Dice, of: &[&'a T]) -> &'a T {
    let index = dice.below(of.len() as u64);
    of[usize::try_from(index).unwrap_or_default()]
}

/// A pod of that name.
pub(crate) fn pod(dice: &mut Dice, name: &str, uid: &str) -> Pod {
    let restart_policy = pick(dice, &["Always", "Always", "OnFailure", "Never"]);
    let init = (0..dice.below(3)).map(|number| init(dice, number)).collect::<Vec<_>>();
    let regular = (0..=dice.below(2)).map(|number| regular(dice, number, restart_policy));
    let mut pod = Pod {
        spec: Some(PodSpec {
            containers: regular.collect(),
            init_containers: Some(init).filter(|init| !init.is_empty()),
            restart_policy: Some(restart_policy.to_owned()),
            termination_grace_period_seconds: Some(pick(dice, &[&2, &5, &30]).to_owned()),
            ..PodSpec::default()
        }),
        ..Pod::default()
    };
    if dice.happens(Chance::percent(5)) {
        pod.spec.get_or_insert_default().active_deadline_seconds = Some(60);
    }
    if dice.happens(Chance::percent(10)) {
        pod.spec.get_or_insert_default().host_network = Some(true);
    }
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.metadata.uid = Some(uid.to_owned());
    pod
}

fn regular(dice: &mut Dice, number: u64, restart_policy: &str) -> Container {
    // A pod that restarts always is mostly one that lasts.
    let ends = if restart_policy == "Always" { Chance::percent(25) } else { Chance::percent(75) };
    let script = if dice.happens(ends) { pick(dice, ENDING) } else { pick(dice, LASTING) };
    let lifecycle = lifecycle(dice);
    Container { lifecycle, ..container(dice, &format!("c{number}"), script) }
}

/// Hooks for one in two, so that they meet everything else that happens.
fn lifecycle(dice: &mut Dice) -> Option<Lifecycle> {
    let pre_stop = hook(dice, Chance::percent(35), PRE_STOP);
    let post_start = hook(dice, Chance::percent(20), POST_START);
    let doomed = hook(dice, Chance::percent(3), &[FAILING]);
    let post_start = doomed.or(post_start);
    let any = pre_stop.is_some() || post_start.is_some();
    any.then(|| Lifecycle { pre_stop, post_start, ..Lifecycle::default() })
}

/// A command, or a number of seconds to rest.
fn hook(dice: &mut Dice, chance: Chance, of: &[&[&str]]) -> Option<LifecycleHandler> {
    let drawn = dice.happens(chance).then(|| pick(dice, of))?;
    let mut hook = LifecycleHandler::default();
    match drawn {
        ["rest", seconds] => {
            let seconds = seconds.parse().unwrap_or_default();
            hook.sleep = Some(SleepAction { seconds });
        }
        script => {
            let command = ["/actor"].iter().chain(script).map(|&step| step.to_owned());
            hook.exec = Some(ExecAction { command: Some(command.collect()) });
        }
    }
    Some(hook)
}

/// Whether a container's postStart hook can only fail.
pub(crate) fn is_doomed(spec: &Container) -> bool {
    let hook = spec.lifecycle.as_ref().and_then(|hooks| hooks.post_start.as_ref());
    let command = hook.and_then(|hook| hook.exec.as_ref()?.command.as_ref());
    command.is_some_and(|command| command.iter().skip(1).eq(FAILING))
}

fn init(dice: &mut Dice, number: u64) -> Container {
    if dice.happens(Chance::percent(30)) {
        let script = pick(dice, LASTING);
        let mut sidecar = container(dice, &format!("s{number}"), script);
        sidecar.restart_policy = Some("Always".to_owned());
        sidecar.lifecycle = lifecycle(dice);
        return sidecar;
    }
    let script: &[&str] = pick(dice, &[&["exit:0"][..], &["sleep:3s", "exit:0"], &["exit:0"]]);
    container(dice, &format!("i{number}"), script)
}

fn container(dice: &mut Dice, name: &str, script: &[&str]) -> Container {
    let image = pick(dice, &[PRESENT, PRESENT, PRESENT, PRESENT, PULLABLE, PULLABLE, MISSING]);
    let image =
        if image == MISSING && !dice.happens(Chance::percent(20)) { PRESENT } else { image };
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some(pick(dice, &["IfNotPresent", "IfNotPresent", "Always"]).to_owned()),
        args: Some(script.iter().map(|&step| step.to_owned()).collect()),
        ..Container::default()
    }
}
