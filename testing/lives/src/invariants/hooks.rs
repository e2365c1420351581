//! Hooks are run.

use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use oarsman_core::pod::PodExt;

use super::Violation;
use super::starts::pod;
use super::story::Story;
use crate::Testimony;
use crate::draw::is_doomed;

/// Before a container that runs is asked to end, its preStop command was begun, by the agent that asks. Rests are nothing that
/// the world could see.
pub(super) fn hooks_come_before_stops(life: &Testimony, story: &Story) -> Vec<Violation> {
    let skipped = story.stop_calls.iter().filter_map(|(at, of_agent, id)| {
        let container = story.containers.iter().find(|container| container.id == *id)?;
        let wanted = pod(life, &container.pod)?.container(&container.name)?;
        let hook = wanted.spec.lifecycle.as_ref()?.pre_stop.as_ref()?;
        let expected = format!("{id} {:?}", hook.exec.as_ref()?.command.clone()?);
        let begun = story.commands.iter().any(|command| {
            command.life == *of_agent && command.at <= *at && command.subject == expected
        });
        (container.runs(*at) && !begun).then(|| Violation {
            rule: "hooks come before stops",
            at: *at,
            what: format!("{}/{} was not heard before its end", container.pod, container.name),
        })
    });
    skipped.collect()
}

/// Whether a postStart hook of the pod failed, or can only fail: that ends containers which would go on.
pub(super) fn fails_to_start(life: &Testimony, story: &Story, uid: &str) -> bool {
    let Some(pod) = pod(life, uid) else { return false };
    pod.all_containers().iter().any(|wanted| {
        is_doomed(&wanted.spec) || {
            let lives = story.containers.iter();
            let mut lives = lives.filter(|c| c.pod == uid && c.name == wanted.spec.name);
            lives.any(|container| has_failed(story, &container.id, &wanted.spec))
        }
    })
}

fn has_failed(story: &Story, id: &str, spec: &Container) -> bool {
    let hook = spec.lifecycle.as_ref().and_then(|hooks| hooks.post_start.as_ref());
    let command = |hook: &LifecycleHandler| hook.exec.as_ref()?.command.clone();
    let Some(command) = hook.and_then(command) else { return false };
    let expected = format!("{id} {command:?}");
    story.commands.iter().any(|command| command.failed && command.subject == expected)
}
