//! Whose a sandbox is.

use super::*;
use crate::fixture;
use crate::labels::ROOT_ANNOTATION;
use crate::view::from_cri::ListedPod;
use crate::view::{ContainerView, PodView, SandboxView};
use oarsman_cri_types::v1;

fn ownership(mode: Mode) -> Ownership {
    Ownership { mode, root: "/ours".to_owned() }
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
fn run_mode_owns_what_it_marked_and_a_kubelet_all_but_what_others_marked() {
    let (ours, theirs, none) = (Some("/ours"), Some("/theirs"), None);
    let table = [
        ("ours", ours, true, true),
        ("another agent's", theirs, false, false),
        ("no mark", none, false, true),
    ];
    for (name, mark, run_mode, kubelet) in table {
        for (mode, want) in [(Mode::Run, run_mode), (Mode::Kubelet, kubelet)] {
            let own = ownership(mode).own_part(marked(&[mark]));
            assert_eq!(!own.is_empty(), want, "{name}, as {mode:?}");
        }
    }
}

#[test]
fn each_of_two_agents_sees_its_own_sandboxes_of_a_pod() {
    for mode in [Mode::Run, Mode::Kubelet] {
        let both = marked(&[Some("/ours"), Some("/theirs")]);
        let own = ownership(mode).own_part(both);
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
        ownership(mode).own_part(view).containers.len()
    };
    assert_eq!(stray(Mode::Run), 0);
    assert_eq!(stray(Mode::Kubelet), 1);
}

/// What the runtime lists of the same pod.
fn listed(view: &PodView) -> ListedPod {
    let sandbox = |s: &SandboxView| v1::PodSandbox {
        id: s.id.to_string(),
        annotations: s.annotations.clone(),
        ..v1::PodSandbox::default()
    };
    let container = |c: &ContainerView| v1::Container {
        id: c.id.to_string(),
        pod_sandbox_id: c.sandbox.to_string(),
        ..v1::Container::default()
    };
    ListedPod {
        full_name: view.full_name.clone(),
        sandboxes: view.sandboxes.iter().map(sandbox).collect(),
        containers: view.containers.iter().map(container).collect(),
    }
}

#[test]
fn lists_are_enough_to_find_what_we_own() {
    let (ours, theirs) = (Some("/ours"), Some("/theirs"));
    let whole = [marked(&[ours]), marked(&[theirs]), marked(&[None]), marked(&[ours, theirs])];
    let strays = whole.clone().map(|mut view| {
        view.sandboxes.truncate(1);
        view
    });
    let bare = whole.clone().map(|mut view| {
        view.containers.clear();
        view
    });
    let homeless = whole.clone().map(|mut view| {
        view.sandboxes.clear();
        view
    });
    for view in [whole, strays, bare, homeless].concat() {
        for mode in [Mode::Run, Mode::Kubelet] {
            let owns = ownership(mode).owns_any_of(&listed(&view));
            let own = ownership(mode).own_part(view.clone());
            assert_eq!(owns, !own.is_empty(), "{mode:?} {view:?}");
        }
    }
}

#[test]
fn an_orphan_is_ours_and_unknown_once_all_sources_are_ready() {
    let table = [
        (false, false, true, OwnershipClaim::Foreign),
        (false, true, true, OwnershipClaim::Foreign),
        (true, true, true, OwnershipClaim::Known),
        (true, true, false, OwnershipClaim::Known),
        (true, false, false, OwnershipClaim::TooEarly),
        (true, false, true, OwnershipClaim::Orphan),
    ];
    for (is_ours, is_known, ready, want) in table {
        assert_eq!(claim(is_ours, is_known, ready), want, "{is_ours} {is_known} {ready}");
    }
}
