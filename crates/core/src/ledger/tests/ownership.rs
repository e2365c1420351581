//! Whose a sandbox is.

use super::*;
use crate::fixture;
use crate::view::{PodView, SandboxView};

fn territory(mode: Mode) -> Territory {
    Territory { mode, root: "/ours".to_owned() }
}

/// A pod with a container in a sandbox of each mark.
fn marked(marks: &[Option<&str>]) -> PodView {
    let pod = fixture::pod().regular("app").build();
    let mark = |mark: Option<&str>, sandbox: &mut SandboxView| {
        let mark = mark.map(|root| (ROOT_ANNOTATION.to_owned(), root.to_owned()));
        sandbox.annotations.extend(mark);
    };
    let add = |view: fixture::ViewBuilder, root: &Option<&str>| {
        view.sandbox().edit_sandbox(|sandbox| mark(*root, sandbox)).running("app")
    };
    marks.iter().fold(fixture::view(&pod), add).build()
}

#[test]
fn a_guest_touches_its_own_and_a_kubelet_all_but_what_others_marked() {
    let (ours, theirs, none) = (Some("/ours"), Some("/theirs"), None);
    let table = [
        ("ours", ours, true, true),
        ("another agent's", theirs, false, false),
        ("no mark", none, false, true),
    ];
    for (name, mark, guest, kubelet) in table {
        for (mode, want) in [(Mode::Guest, guest), (Mode::Kubelet, kubelet)] {
            let own = territory(mode).own_part(marked(&[mark]));
            assert_eq!(!own.is_empty(), want, "{name}, as {mode:?}");
        }
    }
}

#[test]
fn of_a_pod_that_two_agents_run_each_sees_its_own_part() {
    for mode in [Mode::Guest, Mode::Kubelet] {
        let both = marked(&[Some("/ours"), Some("/theirs")]);
        let own = territory(mode).own_part(both);
        assert_eq!(own.sandboxes.len(), 1, "{mode:?}");
        assert_eq!(own.sandboxes[0].annotations[ROOT_ANNOTATION], "/ours", "{mode:?}");
        assert_eq!(own.containers.len(), 1, "{mode:?}");
        assert_eq!(own.containers[0].sandbox, own.sandboxes[0].id, "{mode:?}");
    }
}

#[test]
fn a_container_whose_sandbox_is_gone_belongs_to_the_kubelet() {
    let stray = |mode| {
        let mut view = marked(&[None]);
        view.sandboxes.clear();
        territory(mode).own_part(view).containers.len()
    };
    assert_eq!(stray(Mode::Guest), 0);
    assert_eq!(stray(Mode::Kubelet), 1);
}

#[test]
fn an_orphan_is_ours_and_unknown_once_every_source_has_been_heard() {
    let some = marked(&[None]);
    let none = PodView { sandboxes: Vec::new(), containers: Vec::new(), ..some.clone() };
    let table = [
        (&none, false, true, Claim::Foreign),
        (&none, true, true, Claim::Foreign),
        (&some, true, true, Claim::Known),
        (&some, true, false, Claim::Known),
        (&some, false, false, Claim::TooEarly),
        (&some, false, true, Claim::Orphan),
    ];
    for (own_part, is_known, ready, want) in table {
        assert_eq!(claim(own_part, is_known, ready), want, "{is_known} {ready}");
    }
}
