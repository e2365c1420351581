//! What a container is made with.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, Lifecycle, Pod, VolumeMount};
use oarsman_cri_types::v1::{ContainerConfig, IdMapping, NamespaceMode, Signal, UserNamespace};

use super::node;
use crate::cri_spec::{
    ConfigError, ContainerConfigRequest, ContainerHostPaths, ImageUser, Lookup, PodGrants,
    VolumePath, generate_container_config, target_container_id,
};
use crate::fixture::{pod, view};
use crate::pod::PodExt;

fn made(
    pod: &Pod,
    grants: &PodGrants,
    host_paths: &ContainerHostPaths,
) -> Result<ContainerConfig, ConfigError> {
    let node = node();
    generate_container_config(&ContainerConfigRequest {
        pod,
        spec: &pod.regular()[0],
        restart_count: 4,
        image: "sha256:1",
        image_user: &ImageUser::default(),
        ips: &["10.0.0.7".to_owned()],
        target: None,
        host_paths,
        lookup: &Lookup::default(),
        grants,
        node: &node.context(),
    })
}

fn of(edit: impl FnOnce(&mut Container)) -> ContainerConfig {
    let pod = pod().regular_with("app", edit).build();
    made(&pod, &PodGrants::default(), &ContainerHostPaths::default()).unwrap()
}

fn texts(texts: &[&str]) -> Option<Vec<String>> {
    Some(texts.iter().map(|text| (*text).to_owned()).collect())
}

#[test]
fn a_containers_log_attempt_and_annotation_follow_its_restart_count() {
    let config = of(|_| ());
    assert_eq!(config.log_path, "app/4.log");
    let metadata = config.metadata.unwrap();
    assert_eq!((metadata.name.as_str(), metadata.attempt), ("app", 4));
    assert_eq!(config.annotations["io.kubernetes.container.restartCount"], "4");
    assert_eq!(config.labels["io.kubernetes.container.name"], "app");
}

#[test]
fn the_image_is_named_as_the_runtime_and_as_the_user_knows_it() {
    let image = of(|_| ()).image.unwrap();
    assert_eq!((image.image.as_str(), image.user_specified_image.as_str()), ("sha256:1", "app:1"));
}

#[test]
fn variables_are_replaced_in_the_command_and_its_arguments() {
    let config = of(|spec| {
        let variable = |name: &str, value: &str| EnvVar {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            value_from: None,
        };
        spec.env = Some(vec![variable("B", "b"), variable("A", "a$(B)")]);
        spec.command = texts(&["/bin/$(A)", "$$(A)"]);
        spec.args = texts(&["$(NONE)"]);
        spec.working_dir = Some("/$(A)".to_owned());
    });
    assert_eq!(config.command, ["/bin/ab", "$(A)"]);
    assert_eq!(config.args, ["$(NONE)"]);
    assert_eq!(config.working_dir, "/$(A)", "which nobody expands");
    let envs: Vec<_> = config.envs.iter().map(|env| (env.key.as_str(), &env.value[..])).collect();
    assert_eq!(envs, [("A", &b"ab"[..]), ("B", b"b")]);
}

#[test]
fn a_container_has_the_terminal_that_it_asks_for() {
    let config = of(|spec| {
        (spec.stdin, spec.stdin_once, spec.tty) = (Some(true), Some(true), Some(true));
    });
    assert!(config.stdin && config.stdin_once && config.tty);
    let config = of(|_| ());
    assert!(!config.stdin && !config.stdin_once && !config.tty);
}

#[test]
fn the_stop_signal_is_the_one_of_the_spec_or_the_images() {
    let of_signal = |signal: Option<&str>| {
        let stop_signal = signal.map(str::to_owned);
        let lifecycle = Some(Lifecycle { stop_signal, ..Lifecycle::default() });
        let pod = pod().regular_with("app", |spec| spec.lifecycle = lifecycle).build();
        let config = made(&pod, &PodGrants::default(), &ContainerHostPaths::default());
        config.map(|config| config.stop_signal())
    };
    let rows = [
        (None, Signal::RuntimeDefault),
        (Some("SIGTERM"), Signal::Sigterm),
        (Some("SIGUSR1"), Signal::Sigusr1),
        (Some("SIGRTMIN"), Signal::Sigrtmin),
        (Some("SIGRTMIN+15"), Signal::Sigrtminplus15),
        (Some("SIGRTMAX-1"), Signal::Sigrtmaxminus1),
    ];
    for (signal, expected) in rows {
        assert_eq!(of_signal(signal), Ok(expected));
    }
    let error = of_signal(Some("SIGNAL")).unwrap_err().to_string();
    assert_eq!(error, "stopSignal cannot be \"SIGNAL\"");
}

#[test]
fn mounts_carry_the_ids_of_the_pods_user_namespace() {
    let mapping = IdMapping { host_id: 65536, container_id: 0, length: 65536 };
    let user_namespace =
        UserNamespace { mode: NamespaceMode::Pod.into(), uids: vec![mapping], gids: vec![mapping] };
    let grants = PodGrants { user_namespace: Some(user_namespace.clone()), ..PodGrants::default() };
    let volume = VolumePath { path: "/r/data".into(), ..VolumePath::default() };
    let volumes = BTreeMap::from([("data".to_owned(), volume)]);
    let pod = pod().spec(|spec| spec.host_users = Some(false)).regular_with("app", |spec| {
        let mount = VolumeMount { name: "data".to_owned(), ..VolumeMount::default() };
        spec.volume_mounts = Some(vec![mount]);
    });
    let config = made(
        &pod.build(),
        &grants,
        &ContainerHostPaths { volumes, ..ContainerHostPaths::default() },
    )
    .unwrap();
    assert_eq!(config.mounts[0].uid_mappings, [mapping]);
    assert_eq!(config.mounts[0].gid_mappings, [mapping]);
    let security = config.linux.unwrap().security_context.unwrap();
    assert_eq!(security.namespace_options.unwrap().userns_options, Some(user_namespace));
}

#[test]
fn numbers_are_those_of_the_node() {
    let resources = of(|_| ()).linux.unwrap().resources.unwrap();
    assert_eq!((resources.cpu_shares, resources.oom_score_adj), (2, 1000));
}

#[test]
fn the_target_is_the_newest_of_its_name() {
    let pod = pod().regular("app").build();
    let running = view(&pod).sandbox().exited("app", 1).running("app").build();
    assert_eq!(target_container_id(&running, "app"), Ok("app-1".into()));
    let error = target_container_id(&running, "other").unwrap_err();
    assert_eq!(error.to_string(), "unable to find target container other");
    assert!(target_container_id(&view(&pod).sandbox().unknown("app").build(), "app").is_err());
}
