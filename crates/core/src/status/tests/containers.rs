//! One container at a time: what is said of it for what the runtime shows.

use k8s_openapi::api::core::v1::{Probe, ResourceRequirements, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::*;
use crate::view::ContainerState as Seen;

fn with_probes() -> Pod {
    let edit = |spec: &mut k8s_openapi::api::core::v1::Container| {
        spec.startup_probe = Some(Probe::default());
        spec.readiness_probe = Some(Probe::default());
    };
    pod().regular_with("app", edit).build()
}

#[test]
fn a_running_container_is_described_in_full() {
    let status = status_fixture(one("Always"), |view| view.sandbox().running("app")).status();
    let app = container(&status, "app");
    assert_eq!(app.container_id.as_deref(), Some("containerd://app-0"));
    assert_eq!((app.image.as_str(), app.image_id.as_str()), ("app:1", "sha256:0"));
    assert_eq!((app.ready, app.started, app.restart_count), (true, Some(true), 0));
    assert_eq!(app.last_state, Some(ContainerState::default()));
    let started =
        app.state.as_ref().and_then(|s| s.running.as_ref()).and_then(|r| r.started_at.clone());
    assert_eq!(started.unwrap().0, at(1));
}

#[test]
fn the_stop_signal_that_the_runtime_tells_is_shown_where_its_feature_gate_is_on() {
    for (is_on, expected) in [(true, Some("SIGUSR1")), (false, None)] {
        let mut fixture = status_fixture(one("Always"), |view| view.sandbox().running("app"));
        fixture.view.containers[0].stop_signal = Some("SIGUSR1".to_owned());
        fixture.node.features.container_stop_signals = is_on;
        let status = fixture.status();
        assert_eq!(container(&status, "app").stop_signal.as_deref(), expected);
    }
}

#[test]
fn regular_and_ephemeral_containers_come_by_name_and_init_ones_as_in_the_spec() {
    let names = |list: &Option<Vec<ContainerStatus>>| -> Vec<String> {
        list.iter().flatten().map(|container| container.name.clone()).collect()
    };
    let pod = pod().init("z").sidecar("y").regular("d").regular("c").ephemeral("f").ephemeral("e");
    let status = status_fixture(pod.build(), |view| view).status();
    assert_eq!(names(&status.init_container_statuses), ["z", "y"]);
    assert_eq!(names(&status.container_statuses), ["c", "d"]);
    assert_eq!(names(&status.ephemeral_container_statuses), ["e", "f"]);
    assert_eq!(status_fixture(one("Always"), |view| view).status().init_container_statuses, None);
}

#[test]
fn before_the_first_start_a_container_waits_for_its_creation_or_for_the_init_containers() {
    let rows = [
        (one("Always"), "waiting ContainerCreating"),
        (pod().init("i").regular("app").build(), "waiting PodInitializing"),
    ];
    for (pod, expected) in rows {
        let mut before = status_fixture(pod.clone(), |view| view);
        before.held_by = Some("volume data is not mounted yet");
        let status = before.status();
        assert_eq!(container_state(&status, "app").0, expected);
        let waiting =
            container(&status, "app").state.as_ref().and_then(|s| s.waiting.clone()).unwrap();
        assert_eq!(waiting.message.as_deref(), before.held_by, "and why");
        let created = status_fixture(pod, |view| view.sandbox().created("app"));
        assert_eq!(container_state(&created.status(), "app").0, expected, "created is not started");
    }
}

#[test]
fn the_end_before_this_one_is_the_last_state() {
    let status =
        status_fixture(one("Always"), |view| view.sandbox().exited("app", 3).running("app"))
            .status();
    assert_eq!(container_state(&status, "app"), ("running".into(), "ended 3 Error".into(), 1));
}

#[test]
fn the_last_state_outlives_the_container_it_is_about() {
    let crashed = status_fixture(one("Always"), |view| view.sandbox().exited("app", 3));
    let again = crashed.then(|view| view.sandbox().running("app").edit_container(another));
    let expected = ("running".to_owned(), "ended 3 Error".to_owned(), 1);
    assert_eq!(
        container_state(&again.status(), "app"),
        expected,
        "it ended when it was last spoken of"
    );
    let later = again.then(|view| view.sandbox().running("app").edit_container(another));
    assert_eq!(container_state(&later.status(), "app"), expected, "it was the last state already");
}

#[test]
fn a_container_that_could_not_be_started_again_waits_with_the_reason() {
    let reasons = [
        StartReason::CreateContainerConfigError,
        StartReason::PreCreateHookError,
        StartReason::CreateContainerError,
        StartReason::PreStartHookError,
        StartReason::RunContainerError,
        StartReason::PostStartHookError,
        StartReason::ErrImagePull,
        StartReason::ImagePullBackOff,
        StartReason::ImageInspectError,
        StartReason::ErrImageNeverPull,
        StartReason::InvalidImageName,
        StartReason::RegistryUnavailable,
        StartReason::SignatureValidationFailed,
        StartReason::CrashLoopBackOff,
    ];
    for reason in reasons {
        let status = status_fixture(one("Always"), |view| view.sandbox().exited("app", 1))
            .failing("app", reason)
            .status();
        let expected = (format!("waiting {reason:?}"), "ended 1 Error".to_owned(), 0);
        assert_eq!(container_state(&status, "app"), expected);
        let waiting =
            container(&status, "app").state.as_ref().and_then(|s| s.waiting.clone()).unwrap();
        assert_eq!(waiting.message.as_deref(), Some("app cannot start"));
    }
}

#[test]
fn a_start_error_is_shown_only_while_a_start_is_to_come() {
    let deleting = pod().regular("app").deleting(30).build();
    let rows = [
        ("never made", one("Never"), view(&one("Never")).sandbox(), "waiting RunContainerError"),
        (
            "made",
            one("Never"),
            view(&one("Never")).sandbox().created("app"),
            "waiting RunContainerError",
        ),
        ("runs", one("Always"), view(&one("Always")).sandbox().running("app"), "running"),
        (
            "ended for good",
            one("Never"),
            view(&one("Never")).sandbox().exited("app", 1),
            "ended 1 Error",
        ),
        (
            "being deleted",
            deleting.clone(),
            view(&deleting).sandbox().exited("app", 1),
            "ended 1 Error",
        ),
    ];
    for (case, pod, held, expected) in rows {
        let status_fixture =
            status_fixture(pod, |_| held).failing("app", StartReason::RunContainerError);
        assert_eq!(container_state(&status_fixture.status(), "app").0, expected, "{case}");
    }
    let init = pod().init("i").regular("app").build();
    let done = status_fixture(init, |view| view.sandbox().exited("i", 0))
        .failing("i", StartReason::ErrImagePull);
    assert_eq!(
        container_state(&done.status(), "i").0,
        "ended 0 Completed",
        "an init container that is done"
    );
}

#[test]
fn a_container_that_vanished_while_it_ran_was_killed_and_counts_one_more() {
    let ran = status_fixture(one("Always"), |view| view.sandbox().running("app"));
    let gone = ran.then(|view| view.sandbox());
    let expected =
        ("waiting ContainerCreating".to_owned(), "ended 137 ContainerStatusUnknown".to_owned(), 1);
    assert_eq!(container_state(&gone.status(), "app"), expected);
    assert_eq!(
        container_state(&gone.then(|view| view.sandbox()).status(), "app"),
        expected,
        "only once"
    );
}

#[test]
fn a_container_that_vanished_from_a_pod_being_deleted_does_not_count_one_more() {
    let ran = status_fixture(pod().regular("app").deleting(30).build(), |view| {
        view.sandbox().running("app")
    });
    let (_, before, count) = container_state(&ran.then(|view| view).status(), "app");
    assert_eq!((before.as_str(), count), ("ended 137 ContainerStatusUnknown", 0));
}

#[test]
fn a_container_that_had_ended_stays_as_it_was_when_the_runtime_forgets_it() {
    let ended = status_fixture(one("Never"), |view| view.sandbox().exited("app", 4));
    let expected = ("ended 4 Error".to_owned(), "nothing".to_owned(), 0);
    assert_eq!(container_state(&ended.then(|view| view).status(), "app"), expected);
}

#[test]
fn an_init_container_the_runtime_forgot_was_done_if_something_after_it_was_made() {
    let pod = pod().init("first").init("second").sidecar("side").regular("app").build();
    let done = "ended 0 Completed";
    let rows = [
        (view(&pod).sandbox(), "waiting PodInitializing", "waiting PodInitializing"),
        (view(&pod).sandbox().running("second"), done, "running"),
        (view(&pod).sandbox().running("side"), done, done),
        (view(&pod).sandbox().running("app"), done, done),
        (view(&pod).sandbox().exited("app", 1), done, done),
        (
            view(&pod).sandbox().running("app").sandbox(),
            "waiting PodInitializing",
            "waiting PodInitializing",
        ),
    ];
    for (held, first, second) in rows {
        let status = status_fixture(pod.clone(), |_| held).status();
        assert_eq!(container_state(&status, "first").0, first);
        assert_eq!(container_state(&status, "second").0, second);
    }
    let status = status_fixture(pod, |view| view.sandbox().running("app")).status();
    assert_eq!(
        container_state(&status, "side").0,
        "waiting PodInitializing",
        "a sidecar has to run"
    );
}

#[test]
fn a_container_in_unknown_state_has_ended_if_it_ran() {
    let ran = status_fixture(one("Never"), |view| view.sandbox().running("app"));
    let lost = ran.then(|view| view.sandbox().unknown("app"));
    let expected = ("ended 137 ContainerStatusUnknown".to_owned(), "nothing".to_owned(), 0);
    assert_eq!(container_state(&lost.status(), "app"), expected);
    let still = lost.then(|view| view.sandbox().unknown("app"));
    assert_eq!(container_state(&still.status(), "app"), expected, "and stays so");
    let back = still.then(|view| view.sandbox().running("app"));
    assert_eq!(
        container_state(&back.status(), "app"),
        expected,
        "what must run only once has had its turn"
    );
    let unheard = status_fixture(one("Never"), |view| view.sandbox().unknown("app"));
    assert_eq!(
        container_state(&unheard.status(), "app").0,
        "waiting ContainerCreating",
        "nothing known of a run"
    );
}

#[test]
fn what_has_ended_for_good_does_not_run_again() {
    let rows = [
        ("Never", 1, "ended 1 Error"),
        ("Never", 0, "ended 0 Completed"),
        ("OnFailure", 0, "ended 0 Completed"),
        ("OnFailure", 1, "running"),
        ("Always", 0, "running"),
    ];
    for (policy, code, expected) in rows {
        let ended = status_fixture(one(policy), |view| view.sandbox().exited("app", code));
        let again = ended.then(|view| view.sandbox().exited("app", code).running("app"));
        assert_eq!(container_state(&again.status(), "app").0, expected, "{policy} after {code}");
    }
}

#[test]
fn an_init_container_runs_again_in_a_new_sandbox() {
    let pod = pod().policy("OnFailure").init("i").regular("app").build();
    let done = status_fixture(pod, |view| view.sandbox().exited("i", 0).running("app"));
    let anew = done.then(|view| {
        let view = view.dead_sandbox().exited("app", 137);
        view.sandbox().running("i").edit_container(another)
    });
    assert_eq!(container_state(&anew.status(), "i").0, "running");
}

#[test]
fn the_restart_count_never_goes_back() {
    let fifth = |view: ViewBuilder| {
        view.sandbox().running("app").edit_container(|container| container.label.restart_count = 5)
    };
    let counted = status_fixture(one("Always"), fifth);
    let lost_count = counted.then(|view| view.sandbox().running("app"));
    assert_eq!(container_state(&lost_count.status(), "app").2, 5);
}

#[test]
fn the_termination_message_follows_the_runtimes_message_and_shares_12_kib() {
    // Init and ephemeral containers have their shares, too.
    let pod = pod().regular("app").init("b").ephemeral("c").build();
    let mut ended = status_fixture(pod, |view| {
        view.sandbox().exited("app", 1).edit_container(|container| {
            let Seen::Exited(exit) = &mut container.state else { panic!("it has ended") };
            exit.message = "killed".to_owned();
        })
    });
    ended.termination_messages.insert("app-0".into(), "bye".to_owned());
    let message = |status_fixture: &StatusFixture| {
        container(&status_fixture.status(), "app").ended().unwrap().message.clone().unwrap()
    };
    assert_eq!(message(&ended), "killed: bye");
    ended.termination_messages.insert("app-0".into(), "é".repeat(4096));
    assert_eq!(message(&ended).len(), 4096, "a third of 12 KiB");
}

#[test]
fn started_and_ready_follow_the_probe_results() {
    use ProbeResult::{Failure, Success, Unknown};
    let rows = [
        (None, None, false, false),
        (Some(Unknown), None, false, false),
        (Some(Failure), Some(Success), false, false),
        (Some(Success), None, true, false),
        (Some(Success), Some(Unknown), true, false),
        (Some(Success), Some(Failure), true, false),
        (Some(Success), Some(Success), true, true),
    ];
    for (startup, readiness, started, ready) in rows {
        let mut probed = status_fixture(with_probes(), |view| view.sandbox().running("app"));
        for (kind, result) in [(ProbeKind::Startup, startup), (ProbeKind::Readiness, readiness)] {
            probed = match result {
                Some(result) => probed.probed("app-0", kind, result),
                None => probed,
            };
        }
        let status = probed.status();
        let app = container(&status, "app");
        assert_eq!((app.started, app.ready), (Some(started), ready), "{startup:?} {readiness:?}");
    }
}

#[test]
fn started_and_ready_are_always_set_for_a_regular_container() {
    let rows = [
        ("never made", view(&one("Always")).sandbox(), (Some(false), false)),
        ("no sandbox either", view(&one("Always")), (Some(false), false)),
        ("only created", view(&one("Always")).sandbox().created("app"), (Some(false), false)),
        ("runs", view(&one("Always")).sandbox().running("app"), (Some(true), true)),
        ("ended well", view(&one("Always")).sandbox().exited("app", 0), (Some(false), false)),
        ("ended badly", view(&one("Always")).sandbox().exited("app", 1), (Some(false), false)),
        ("nobody can tell", view(&one("Always")).sandbox().unknown("app"), (Some(false), false)),
    ];
    for (case, held, expected) in rows {
        for status_fixture in [
            status_fixture(one("Always"), |_| held.clone()),
            status_fixture(one("Always"), |_| held).failing("app", StartReason::CrashLoopBackOff),
        ] {
            let status = status_fixture.status();
            let app = container(&status, "app");
            assert_eq!((app.started, app.ready), expected, "{case}");
        }
    }
}

#[test]
fn a_probe_result_of_an_earlier_container_does_not_count() {
    let ready =
        status_fixture(with_probes(), |view| view.sandbox().exited("app", 1).running("app"))
            .probed("app-0", ProbeKind::Startup, ProbeResult::Success)
            .probed("app-0", ProbeKind::Readiness, ProbeResult::Success);
    let app = container(&ready.status(), "app").clone();
    assert_eq!((app.started, app.ready), (Some(false), false));
}

#[test]
fn only_what_runs_in_the_newest_sandbox_is_ready() {
    let rows = [
        (view(&one("Always")).sandbox().running("app"), true),
        (view(&one("Always")).sandbox().running("app").sandbox(), false),
        (view(&one("Always")).sandbox().exited("app", 0), false),
        (view(&one("Always")).sandbox().created("app"), false),
    ];
    for (held, ready) in rows {
        let status = status_fixture(one("Always"), |_| held).status();
        assert_eq!(container(&status, "app").ready, ready);
    }
}

#[test]
fn an_init_container_is_ready_when_it_is_done_and_an_ephemeral_one_is_not_asked() {
    let pod = pod().init("i").regular("app").ephemeral("debug").build();
    let rows = [
        (view(&pod).sandbox().running("i"), (false, Some(true))),
        (view(&pod).sandbox().exited("i", 0), (true, Some(false))),
        (view(&pod).sandbox().exited("i", 1), (false, Some(false))),
        (
            view(&pod).sandbox().exited("i", 0).edit_container(|container| {
                let Seen::Exited(exit) = &mut container.state else { panic!("it has ended") };
                exit.reason = "OOMKilled".to_owned();
            }),
            (false, Some(false)),
        ),
    ];
    for (held, expected) in rows {
        let status = status_fixture(pod.clone(), |_| held).status();
        let init = container(&status, "i");
        assert_eq!((init.ready, init.started), expected);
    }
    let status = status_fixture(pod, |view| view.sandbox().running("debug")).status();
    let debug = container(&status, "debug");
    assert_eq!((debug.ready, debug.started), (false, None));
}

#[test]
fn volume_mount_statuses_have_recursive_read_only() {
    let rows = [
        (None, None, true, None),
        (Some(true), None, true, Some("Disabled")),
        (Some(true), Some("Disabled"), true, Some("Disabled")),
        (Some(true), Some("IfPossible"), true, Some("Enabled")),
        (Some(true), Some("IfPossible"), false, Some("Disabled")),
        (Some(true), Some("Enabled"), true, Some("Enabled")),
    ];
    for (read_only, recursive, supported, expected) in rows {
        let mount = VolumeMount {
            name: "data".to_owned(),
            mount_path: "/data".to_owned(),
            read_only,
            recursive_read_only: recursive.map(ToOwned::to_owned),
            ..VolumeMount::default()
        };
        let pod = pod().regular_with("app", |spec| spec.volume_mounts = Some(vec![mount])).build();
        let mut mounted = status_fixture(pod, |view| view);
        mounted.node.recursive_read_only = supported;
        let status = mounted.status();
        let mounts = container(&status, "app").volume_mounts.as_ref().unwrap();
        assert_eq!(
            mounts[0].recursive_read_only.as_deref(),
            expected,
            "{read_only:?} {recursive:?}"
        );
    }
}

#[test]
fn the_user_of_a_container_is_what_the_runtime_reports() {
    use crate::view::LinuxUser;
    use k8s_openapi::api::core::v1::{ContainerUser, LinuxContainerUser};
    let describe_condition = |uid, gid, groups: Option<&[i64]>| {
        let supplemental_groups = groups.map(<[i64]>::to_vec);
        let linux = LinuxContainerUser { uid, gid, supplemental_groups };
        Some(ContainerUser { linux: Some(linux) })
    };
    let seen = |uid, gid, groups: &[i64]| Some(LinuxUser { uid, gid, groups: groups.to_vec() });
    let rows = [
        (None, None),
        (seen(0, 0, &[]), describe_condition(0, 0, None)),
        (seen(1000, 3000, &[3000, 4000]), describe_condition(1000, 3000, Some(&[3000, 4000]))),
    ];
    for (user, expected) in rows {
        let runs = |view: ViewBuilder| {
            view.sandbox().running("app").edit_container(|container| container.user = user)
        };
        let status = status_fixture(one("Always"), runs).status();
        assert_eq!(container(&status, "app").user, expected);
    }
}

#[test]
fn fields_set_by_another_kubelet_are_kept_for_the_same_container() {
    use k8s_openapi::api::core::v1::ContainerUser;
    let ran = status_fixture(one("Always"), |view| view.sandbox().running("app"));
    let mut told = ran.status();
    told.container_statuses.as_mut().unwrap()[0].user = Some(ContainerUser::default());
    told.container_statuses.as_mut().unwrap()[0].allocated_resources_status = Some(Vec::new());
    let same = ran.clone().after(told.clone()).status();
    assert_eq!(container(&same, "app").user, Some(ContainerUser::default()));
    assert_eq!(container(&same, "app").allocated_resources_status, Some(Vec::new()));
    let other = ran.then(|view| view.sandbox().running("app").edit_container(another)).after(told);
    assert_eq!(container(&other.status(), "app").user, None);
    assert_eq!(container(&other.status(), "app").allocated_resources_status, None);
}

#[test]
fn resources_are_those_of_the_spec_once_there_is_a_container() {
    let amounts = BTreeMap::from([("cpu".to_owned(), Quantity("1".to_owned()))]);
    let resources = ResourceRequirements { requests: Some(amounts.clone()), ..Default::default() };
    let pod = pod().regular_with("app", |spec| spec.resources = Some(resources.clone())).build();
    let status = status_fixture(pod.clone(), |view| view.sandbox().running("app")).status();
    assert_eq!(container(&status, "app").resources, Some(resources));
    assert_eq!(container(&status, "app").allocated_resources, Some(amounts));
    let status = status_fixture(pod, |view| view).status();
    assert_eq!(container(&status, "app").resources, None);
}
