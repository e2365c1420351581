//! Messages as runtimes send them, and what is made of them.

use super::*;

fn sandbox(id: &str, uid: &str, attempt: u32) -> v1::PodSandbox {
    let metadata = v1::PodSandboxMetadata {
        name: "web".to_owned(),
        namespace: "default".to_owned(),
        uid: uid.to_owned(),
        attempt,
    };
    v1::PodSandbox { id: id.to_owned(), metadata: Some(metadata), ..v1::PodSandbox::default() }
}

fn container(id: &str, sandbox: &str) -> v1::Container {
    v1::Container { id: id.to_owned(), pod_sandbox_id: sandbox.to_owned(), ..Default::default() }
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn lists_are_sorted_by_pod_and_containers_follow_their_sandbox() {
    let sandboxes = vec![sandbox("s1", "u1", 0), sandbox("s2", "u2", 0), sandbox("s3", "u1", 1)];
    let of_gone = [(POD_UID_LABEL, "u3"), ("io.kubernetes.pod.name", "gone")];
    let orphan = v1::Container { labels: labels(&of_gone), ..container("c4", "s4") };
    let containers =
        vec![container("c1", "s1"), container("c2", "s2"), orphan, container("nobody's", "s9")];
    let pods = by_pod(sandboxes, containers);
    let told: Vec<String> = pods
        .iter()
        .map(|(uid, listed)| {
            let sandboxes: Vec<&str> = listed.sandboxes.iter().map(|s| s.id.as_str()).collect();
            let containers: Vec<&str> = listed.containers.iter().map(|c| c.id.as_str()).collect();
            format!("{uid} {}: {sandboxes:?} {containers:?}", listed.full_name.name)
        })
        .collect();
    let expected =
        [r#"u1 web: ["s1", "s3"] ["c1"]"#, r#"u2 web: ["s2"] ["c2"]"#, r#"u3 gone: [] ["c4"]"#];
    assert_eq!(told, expected);
}

fn sandbox_status(mode: Option<v1::NamespaceMode>, ips: &[&str]) -> v1::PodSandboxStatus {
    let options = mode
        .map(|mode| v1::NamespaceOption { network: mode.into(), ..v1::NamespaceOption::default() });
    let namespaces = Some(v1::Namespace { options });
    let network = ips.split_first().map(|(first, more)| v1::PodSandboxNetworkStatus {
        ip: (*first).to_owned(),
        additional_ips: more.iter().map(|ip| v1::PodIp { ip: (*ip).to_owned() }).collect(),
    });
    v1::PodSandboxStatus {
        linux: Some(v1::LinuxPodSandboxStatus { namespaces }),
        network,
        ..v1::PodSandboxStatus::default()
    }
}

#[test]
fn the_termination_message_file_is_the_one_mounted_at_its_path() {
    let mount = |container_path: &str, host_path: &str| v1::Mount {
        container_path: container_path.to_owned(),
        host_path: host_path.to_owned(),
        ..v1::Mount::default()
    };
    let rows = [
        ("/dev/termination-log", Some("/root/pods/u/containers/c/1")),
        ("/elsewhere", None),
        ("", None),
    ];
    for (path, file) in rows {
        let status = v1::ContainerStatus {
            annotations: labels(&[(MESSAGE_PATH_ANNOTATION, path)]),
            mounts: vec![
                mount("", "/nothing"),
                mount("/dev/termination-log", "/root/pods/u/containers/c/1"),
            ],
            ..v1::ContainerStatus::default()
        };
        let view = container_view(&container("c1", "s1"), &status);
        assert_eq!(view.message_file.as_deref(), file.map(std::path::Path::new), "{path:?}");
    }
}

#[test]
fn a_sandbox_view_has_network_and_addresses() {
    use v1::NamespaceMode::{Node, Pod};
    let rows: [(_, &[&str], _, &[&str]); 6] = [
        (Some(Pod), &["10.0.0.1"], false, &["10.0.0.1"]),
        (Some(Pod), &["10.0.0.1", "fd00::1"], false, &["10.0.0.1", "fd00::1"]),
        (Some(Pod), &[""], false, &[]),
        (Some(Pod), &[], false, &[]),
        (Some(Node), &[""], true, &[]),
        (None, &["10.0.0.1"], false, &["10.0.0.1"]),
    ];
    for (mode, ips, host_network, expected) in rows {
        let view = sandbox_view(&sandbox_status(mode, ips));
        assert_eq!(
            (view.host_network, view.ips.as_slice()),
            (host_network, &to_owned(expected)[..])
        );
    }
}

fn to_owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_container_view_has_the_state() {
    use v1::ContainerState::{
        ContainerCreated, ContainerExited, ContainerRunning, ContainerUnknown,
    };
    let second = 1_000_000_000;
    let status = |state: v1::ContainerState, started: i64| v1::ContainerStatus {
        state: state.into(),
        started_at: started * second,
        finished_at: 9 * second,
        exit_code: 137,
        reason: "OOMKilled".to_owned(),
        ..v1::ContainerStatus::default()
    };
    let at = |seconds| Timestamp::from_second(seconds).unwrap();
    let exit = |started_at| {
        let (reason, message) = ("OOMKilled".to_owned(), String::new());
        let exit = Exit { started_at, finished_at: at(9), code: 137, reason, message };
        ContainerState::Exited(exit)
    };
    let rows = [
        (status(ContainerCreated, 0), ContainerState::Created),
        (status(ContainerRunning, 5), ContainerState::Running { started_at: at(5) }),
        (status(ContainerExited, 5), exit(Some(at(5)))),
        (status(ContainerExited, 0), exit(None)),
        (status(ContainerUnknown, 5), ContainerState::Unknown),
        (
            v1::ContainerStatus { state: 99, ..v1::ContainerStatus::default() },
            ContainerState::Unknown,
        ),
    ];
    for (status, expected) in rows {
        assert_eq!(container_view(&container("c", "s"), &status).state, expected);
    }
}

#[test]
fn a_container_view_has_the_user_if_the_runtime_reports_it() {
    let user = |linux| Some(v1::ContainerUser { linux });
    let linux = |uid, gid, groups: &[i64]| {
        Some(v1::LinuxContainerUser { uid, gid, supplemental_groups: groups.to_vec() })
    };
    let seen = |uid, gid, groups: &[i64]| Some(LinuxUser { uid, gid, groups: groups.to_vec() });
    let rows = [
        (None, None),
        (user(None), None),
        (user(linux(0, 0, &[])), seen(0, 0, &[])),
        (user(linux(1000, 3000, &[3000, 4000])), seen(1000, 3000, &[3000, 4000])),
    ];
    for (user, expected) in rows {
        let status = v1::ContainerStatus { user, ..v1::ContainerStatus::default() };
        assert_eq!(container_view(&container("c", "s"), &status).user, expected);
    }
}

#[test]
fn name_and_image_are_those_of_the_spec_where_the_runtime_knows_them() {
    let metadata = Some(v1::ContainerMetadata { name: "of metadata".to_owned(), attempt: 4 });
    let image = |asked: &str| {
        let (image, asked) = ("sha256:abc".to_owned(), asked.to_owned());
        Some(v1::ImageSpec { image, user_specified_image: asked, ..v1::ImageSpec::default() })
    };
    let foreign = v1::ContainerStatus { metadata, image: image(""), ..Default::default() };
    let view = container_view(&container("c", "s"), &foreign);
    assert_eq!((view.name.as_str(), view.image.as_str()), ("of metadata", "sha256:abc"));
    assert_eq!((view.label.hash, view.label.restart_count), (None, 4));
    let labels = labels(&[(CONTAINER_NAME_LABEL, "app")]);
    let ours = v1::ContainerStatus { labels, image: image("app:1"), ..foreign };
    let view = container_view(&container("c", "s"), &ours);
    assert_eq!((view.name.as_str(), view.image.as_str()), ("app", "app:1"));
}

#[test]
fn a_view_is_newest_first_by_attempt_even_if_the_clock_went_back() {
    let status = |id: &str, attempt, created_at| {
        let metadata = sandbox(id, "u", attempt).metadata;
        v1::PodSandboxStatus { id: id.to_owned(), metadata, created_at, ..Default::default() }
    };
    let sandboxes = [status("first", 0, 900), status("second", 1, 100)];
    let made = |id: &str, attempt, created_at| {
        let metadata = Some(v1::ContainerMetadata { name: "app".to_owned(), attempt });
        v1::ContainerStatus { id: id.to_owned(), metadata, created_at, ..Default::default() }
    };
    let containers = [made("c0", 0, 900), made("c2", 2, 100), made("c1", 1, 500)];
    let listed = container("", "second");
    let name = FullName { name: "web".to_owned(), namespace: "default".to_owned() };
    let pairs = containers.iter().map(|status| (&listed, status));
    let view = pod_view("u".into(), name, &sandboxes, pairs);
    let sandboxes: Vec<&str> = view.sandboxes.iter().map(|s| s.id.as_str()).collect();
    let containers: Vec<&str> = view.containers.iter().map(|c| c.id.as_str()).collect();
    assert_eq!((sandboxes, containers), (vec!["second", "first"], vec!["c2", "c1", "c0"]));
}

#[test]
fn a_list_tells_a_view_something_new_only_by_other_ids_or_states() {
    let view = PodView {
        sandboxes: vec![sandbox_view(&v1::PodSandboxStatus {
            id: "s".to_owned(),
            ..sandbox_status(None, &[])
        })],
        containers: vec![
            container_view(
                &container("c", "s"),
                &status("c", v1::ContainerState::ContainerRunning),
            ),
            container_view(
                &container("d", "s"),
                &status("d", v1::ContainerState::ContainerCreated),
            ),
        ],
        ..PodView::empty("u".into(), FullName::default())
    };
    let listed = |changes: &[(&str, Option<i32>)]| {
        let ready = v1::PodSandboxState::SandboxReady as i32;
        let mut states = ListedStates::from([
            ("s".to_owned(), ready),
            ("c".to_owned(), v1::ContainerState::ContainerRunning as i32),
            ("d".to_owned(), v1::ContainerState::ContainerCreated as i32),
        ]);
        for (id, state) in changes {
            match state {
                Some(state) => states.insert((*id).to_owned(), *state),
                None => states.remove(*id),
            };
        }
        states
    };
    let exited = v1::ContainerState::ContainerExited as i32;
    let rows = [
        (listed(&[]), true),
        (listed(&[("c", Some(exited))]), false),
        (listed(&[("c", None)]), false),
        (listed(&[("e", Some(exited))]), false),
        (listed(&[("c", None), ("e", Some(exited))]), false),
        (listed(&[("s", Some(v1::PodSandboxState::SandboxNotready as i32))]), false),
    ];
    for (listed, is_known) in rows {
        assert_eq!(view.listed_states() == listed, is_known, "{listed:?}");
    }
}

fn status(id: &str, state: v1::ContainerState) -> v1::ContainerStatus {
    v1::ContainerStatus { id: id.to_owned(), state: state as i32, ..v1::ContainerStatus::default() }
}
