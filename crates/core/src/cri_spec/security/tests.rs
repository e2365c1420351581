//! Security contexts: users, groups, capabilities, profiles and namespaces.

use k8s_openapi::api::core::v1::{AppArmorProfile, Capabilities, SeccompProfile};
use oarsman_cri_types::v1::Image;
use oarsman_cri_types::v1::security_profile::ProfileType;

use super::*;
use crate::cri_spec::tests::{CriSpecNode, node};
use crate::fixture::{PodBuilder, pod};

/// A pod with one container and these two contexts.
fn with(of_pod: Option<PodSecurityContext>, own: Option<SecurityContext>) -> PodBuilder {
    pod()
        .regular_with("app", |spec| spec.security_context = own)
        .spec(|spec| spec.security_context = of_pod)
}

fn shared(edit: impl FnOnce(&mut PodSecurityContext)) -> Option<PodSecurityContext> {
    let mut context = PodSecurityContext::default();
    edit(&mut context);
    Some(context)
}

fn own(edit: impl FnOnce(&mut SecurityContext)) -> Option<SecurityContext> {
    let mut context = SecurityContext::default();
    edit(&mut context);
    Some(context)
}

fn made_on(
    node: &CriSpecNode,
    pod: PodBuilder,
    user: &ImageUser,
    target: Option<&ContainerId>,
) -> Result<LinuxContainerSecurityContext, ConfigError> {
    let grants = PodGrants { volume_groups: vec![77], ..PodGrants::default() };
    let pod = pod.build();
    container(&SecurityContextInput {
        pod: &pod,
        spec: &pod.regular()[0],
        image_user: user,
        target,
        grants: &grants,
        node: &node.context(),
    })
}

fn made(pod: PodBuilder) -> LinuxContainerSecurityContext {
    made_on(&node(), pod, &ImageUser::default(), None).unwrap()
}

fn of_sandbox(pod: PodBuilder) -> LinuxSandboxSecurityContext {
    let grants = PodGrants { volume_groups: vec![77], ..PodGrants::default() };
    sandbox(&pod.build(), &grants).unwrap()
}

#[test]
fn namespaces_are_the_nodes_the_pods_or_the_containers() {
    let modes = |change: fn(&mut PodSpec)| {
        let options = namespaces(&pod().spec(change).build(), &PodGrants::default()).unwrap();
        assert_eq!(options.userns_options.unwrap().mode(), Node);
        (
            NamespaceMode::try_from(options.network).unwrap(),
            NamespaceMode::try_from(options.ipc).unwrap(),
            NamespaceMode::try_from(options.pid).unwrap(),
        )
    };
    use NamespaceMode::{Container, Node, Pod};
    assert_eq!(modes(|_| {}), (Pod, Pod, Container));
    assert_eq!(modes(|spec| spec.host_network = Some(true)), (Node, Pod, Container));
    assert_eq!(modes(|spec| spec.host_ipc = Some(true)), (Pod, Node, Container));
    assert_eq!(modes(|spec| spec.share_process_namespace = Some(true)), (Pod, Pod, Pod));
    assert_eq!(modes(|spec| spec.host_pid = Some(true)), (Pod, Pod, Node));
    assert_eq!(modes(|spec| spec.host_users = Some(true)), (Pod, Pod, Container));
}

#[test]
fn a_target_is_joined_where_processes_are_not_shared_anyway() {
    let target = ContainerId::from("c1");
    type Edit = fn(&mut PodSpec);
    let rows: [(Edit, NamespaceMode, &str); 3] = [
        (|_| (), NamespaceMode::Target, "c1"),
        (|spec| spec.share_process_namespace = Some(true), NamespaceMode::Pod, ""),
        (|spec| spec.host_pid = Some(true), NamespaceMode::Node, ""),
    ];
    for (edit, mode, id) in rows {
        let pod = with(None, None).spec(edit);
        let made = made_on(&node(), pod, &ImageUser::default(), Some(&target)).unwrap();
        let options = made.namespace_options.unwrap();
        assert_eq!((options.pid(), options.target_id.as_str()), (mode, id));
    }
}

#[test]
fn a_user_namespace_is_never_silently_missing() {
    let pod = || with(None, None).spec(|spec| spec.host_users = Some(false));
    let error = made_on(&node(), pod(), &ImageUser::default(), None).unwrap_err();
    assert_eq!(error, ConfigError::NoUserNamespace);
    assert_eq!(sandbox(&pod().build(), &PodGrants::default()), Err(ConfigError::NoUserNamespace));
}

#[test]
fn a_user_namespace_does_not_go_with_namespaces_of_the_node() {
    let grants =
        PodGrants { user_namespace: Some(UserNamespace::default()), ..PodGrants::default() };
    type Edit = fn(&mut PodSpec);
    let rows: [(Edit, Option<&str>); 4] = [
        (|_| (), None),
        (|spec| spec.host_network = Some(true), Some("hostNetwork")),
        (|spec| spec.host_pid = Some(true), Some("hostPID")),
        (|spec| spec.host_ipc = Some(true), Some("hostIPC")),
    ];
    for (edit, field) in rows {
        let pod = with(None, None).spec(|spec| spec.host_users = Some(false)).spec(edit);
        let error = sandbox(&pod.build(), &grants).err();
        assert_eq!(error, field.map(|field| ConfigError::HostNamespace { field }));
    }
}

#[test]
fn the_security_context_of_a_container_overrides_that_of_its_pod() {
    let pod = with(
        shared(|context| {
            context.run_as_user = Some(1);
            context.run_as_group = Some(2);
            context.se_linux_options =
                Some(SELinuxOptions { level: Some("s0".to_owned()), ..Default::default() });
        }),
        own(|context| context.run_as_user = Some(10)),
    );
    let context = made(pod.clone());
    assert_eq!(context.run_as_user, Some(number(10)));
    assert_eq!(context.run_as_group, Some(number(2)));
    assert_eq!(context.selinux_options.unwrap().level, "s0");
    let sandbox = of_sandbox(pod);
    assert_eq!(sandbox.run_as_user, Some(number(1)));
    assert_eq!(sandbox.run_as_group, Some(number(2)));
    assert_eq!(sandbox.selinux_options.unwrap().level, "s0");
}

#[test]
fn the_groups_are_those_of_the_volumes_and_those_the_pod_adds() {
    let pod = with(
        shared(|context| {
            context.fs_group = Some(5);
            context.supplemental_groups = Some(vec![6, 7]);
            context.supplemental_groups_policy = Some("Strict".to_owned());
        }),
        None,
    );
    let context = made(pod.clone());
    assert_eq!(context.supplemental_groups, [5, 6, 7, 77]);
    assert_eq!(context.supplemental_groups_policy(), SupplementalGroupsPolicy::Strict);
    let sandbox = of_sandbox(pod);
    assert_eq!(sandbox.supplemental_groups, [5, 77, 6, 7]);
    assert_eq!(sandbox.supplemental_groups_policy(), SupplementalGroupsPolicy::Strict);
    assert_eq!(made(with(None, None)).supplemental_groups, [77]);
    let wrong = shared(|context| context.supplemental_groups_policy = Some("Odd".to_owned()));
    let error = made_on(&node(), with(wrong, None), &ImageUser::default(), None).unwrap_err();
    assert_eq!(error.to_string(), "supplementalGroupsPolicy cannot be \"Odd\"");
}

#[test]
fn a_sandbox_is_privileged_when_any_container_is() {
    let privileged = |context: &mut SecurityContext| context.privileged = Some(true);
    let rows = [
        (with(None, None), false),
        (with(None, own(privileged)), true),
        (with(None, None).init_with("i", |spec| spec.security_context = own(privileged)), true),
        (
            with(None, None).ephemeral("e").spec(|spec| {
                for container in spec.ephemeral_containers.iter_mut().flatten() {
                    container.security_context = own(privileged);
                }
            }),
            true,
        ),
    ];
    for (pod, expected) in rows {
        assert_eq!(of_sandbox(pod).privileged, expected);
    }
}

#[test]
fn flags_and_capabilities_are_passed_on() {
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    let context = made(with(
        None,
        own(|context| {
            context.privileged = Some(true);
            context.read_only_root_filesystem = Some(true);
            context.allow_privilege_escalation = Some(false);
            let (add, drop) = (texts(&["NET_ADMIN"]), texts(&["ALL"]));
            context.capabilities = Some(Capabilities { add, drop });
        }),
    ));
    assert!(context.privileged && context.readonly_rootfs && context.no_new_privs);
    let capabilities = context.capabilities.unwrap();
    assert_eq!(capabilities.add_capabilities, ["NET_ADMIN"]);
    assert_eq!(capabilities.drop_capabilities, ["ALL"]);
    let plain = made(with(None, None));
    assert!(!plain.privileged && !plain.readonly_rootfs && !plain.no_new_privs);
    assert_eq!(plain.capabilities, None);
    let escalating = own(|context| context.allow_privilege_escalation = Some(true));
    assert!(!made(with(None, escalating)).no_new_privs);
}

#[test]
fn kernel_paths_are_masked_unless_proc_mount_is_unmasked() {
    let mut node = node();
    node.settings.masked_paths = vec!["/sys/devices/system/cpu/cpu0/thermal_throttle".to_owned()];
    let paths = |mount: Option<&str>| {
        let context = own(|context| context.proc_mount = mount.map(str::to_owned));
        let made = made_on(&node, with(None, context), &ImageUser::default(), None).unwrap();
        (made.masked_paths, made.readonly_paths)
    };
    for mount in [None, Some("Default")] {
        let (masked, read_only) = paths(mount);
        assert_eq!(masked.len(), 13);
        assert!(masked.iter().any(|path| path == "/proc/kcore"));
        assert_eq!(masked[12], "/sys/devices/system/cpu/cpu0/thermal_throttle");
        assert_eq!(
            read_only,
            ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
        );
    }
    assert_eq!(paths(Some("Unmasked")), (Vec::new(), Vec::new()));
}

#[test]
fn a_container_runs_as_its_spec_or_its_image_says() {
    let image = |uid: Option<i64>, name: &str| {
        let username = name.to_owned();
        ImageUser::from(&Image { uid: uid.map(number), username, ..Image::default() })
    };
    let user = |user| own(|context| context.run_as_user = user);
    let rows = [
        (user(None), image(None, ""), (Some(number(0)), "")),
        (user(None), image(Some(1000), ""), (Some(number(1000)), "")),
        (user(None), image(None, "www"), (None, "www")),
        (user(Some(5)), image(Some(1000), ""), (Some(number(5)), "")),
        (user(Some(5)), image(None, "www"), (Some(number(5)), "")),
    ];
    for (context, image, (id, name)) in rows {
        let made = made_on(&node(), with(None, context), &image, None).unwrap();
        assert_eq!((made.run_as_user, made.run_as_username.as_str()), (id, name));
    }
}

#[test]
fn run_as_non_root_refuses_root() {
    let (by_id, by_name) = (ImageUser::Id, |name: &str| ImageUser::Name(name.to_owned()));
    let rows = [
        (Some(0), by_id(1000), Some("container's runAsUser breaks non-root policy")),
        (Some(1000), by_id(0), None),
        (Some(1000), by_name("www"), None),
        (None, by_id(1000), None),
        (None, by_id(0), Some("container has runAsNonRoot and image will run as root")),
        (None, by_name("www"), Some("container has runAsNonRoot and image has non-numeric user")),
        (None, by_id(-1), Some("container has runAsNonRoot and image has an invalid user id")),
        (None, by_id(1 << 31), Some("container has runAsNonRoot and image has an invalid user")),
    ];
    for (user, image, expected) in rows {
        for of_pod in [false, true] {
            let context = own(|context| {
                context.run_as_user = user;
                context.run_as_non_root = (!of_pod).then_some(true);
            });
            let shared = shared(|context| context.run_as_non_root = Some(true));
            let made = made_on(&node(), with(shared, context), &image, None);
            match (made, expected) {
                (Ok(_), None) => {}
                (Err(error), Some(start)) => {
                    let error = error.to_string();
                    let whose = "(pod: \"web_default(uid-web)\", container: app)";
                    assert!(error.starts_with(start) && error.ends_with(whose), "{error}");
                }
                (made, expected) => panic!("{user:?} {image:?}: {made:?} {expected:?}"),
            }
        }
    }
    let may = own(|context| context.run_as_non_root = Some(false));
    let must = shared(|context| context.run_as_non_root = Some(true));
    assert!(made_on(&node(), with(must, may), &by_id(0), None).is_ok(), "the container's word");
}

fn seccomp(kind: &str, file: Option<&str>) -> Option<SeccompProfile> {
    let localhost_profile = file.map(str::to_owned);
    Some(SeccompProfile { type_: kind.to_owned(), localhost_profile })
}

#[test]
fn seccomp_is_the_containers_the_pods_or_the_nodes() {
    let file = "/var/lib/kubelet/seccomp/a/b.json";
    let rows = [
        (None, None, false, (ProfileType::Unconfined, "")),
        (None, None, true, (ProfileType::RuntimeDefault, "")),
        (seccomp("RuntimeDefault", None), None, false, (ProfileType::RuntimeDefault, "")),
        (seccomp("Unconfined", None), None, true, (ProfileType::Unconfined, "")),
        (seccomp("Localhost", Some("a/b.json")), None, true, (ProfileType::Localhost, file)),
        (
            seccomp("Unconfined", None),
            seccomp("RuntimeDefault", None),
            false,
            (ProfileType::RuntimeDefault, ""),
        ),
    ];
    for (of_pod, of_container, default, (kind, file)) in rows {
        let mut node = node();
        node.settings.seccomp_default = default;
        let pod = with(
            shared(|context| context.seccomp_profile = of_pod),
            own(|context| context.seccomp_profile = of_container),
        );
        assert_eq!(
            of_sandbox(pod.clone()).seccomp.unwrap().profile_type(),
            ProfileType::RuntimeDefault,
            "whatever the containers have"
        );
        let made = made_on(&node, pod, &ImageUser::default(), None).unwrap().seccomp.unwrap();
        assert_eq!((made.profile_type(), made.localhost_ref.as_str()), (kind, file));
    }
}

/// CVE-2023-2431: an empty name must not mean no profile at all.
#[test]
fn a_profile_without_a_name_is_refused() {
    let app_armor = |kind: &str, name: Option<&str>| {
        let localhost_profile = name.map(str::to_owned);
        own(|context| {
            context.app_armor_profile =
                Some(AppArmorProfile { type_: kind.to_owned(), localhost_profile });
        })
    };
    let own_seccomp =
        |kind: &str, name| own(|context| context.seccomp_profile = seccomp(kind, name));
    let no_name = |field| ConfigError::NoProfileName { field };
    let unknown = |field| ConfigError::Unknown { field, value: String::new() };
    let rows = [
        (own_seccomp("Localhost", None), no_name("seccompProfile")),
        (own_seccomp("Localhost", Some("")), no_name("seccompProfile")),
        (own_seccomp("", Some("x")), unknown("seccompProfile")),
        (app_armor("Localhost", None), no_name("appArmorProfile")),
        (app_armor("Localhost", Some("")), no_name("appArmorProfile")),
        (app_armor("", None), unknown("appArmorProfile")),
    ];
    for (context, expected) in rows {
        let made = made_on(&node(), with(None, context), &ImageUser::default(), None);
        assert_eq!(made, Err(expected));
    }
    let of_pod = shared(|context| context.seccomp_profile = seccomp("Localhost", Some("")));
    let made = made_on(&node(), with(of_pod, None), &ImageUser::default(), None);
    assert_eq!(made, Err(no_name("seccompProfile")));
}

#[test]
fn app_armor_is_set_in_the_new_and_in_the_deprecated_field() {
    let field = |kind: &str, name: Option<&str>| {
        let localhost_profile = name.map(str::to_owned);
        Some(AppArmorProfile { type_: kind.to_owned(), localhost_profile })
    };
    use ProfileType::{Localhost, RuntimeDefault, Unconfined};
    let rows = [
        (None, None, None, None),
        (field("RuntimeDefault", None), None, None, Some((RuntimeDefault, "", "runtime/default"))),
        (field("Unconfined", None), None, None, Some((Unconfined, "", "unconfined"))),
        (field("Localhost", Some("p")), None, None, Some((Localhost, "p", "localhost/p"))),
        (None, Some("localhost/p"), None, Some((Localhost, "p", "localhost/p"))),
        (None, None, field("Unconfined", None), Some((Unconfined, "", "unconfined"))),
        (
            None,
            Some("runtime/default"),
            field("Unconfined", None),
            Some((RuntimeDefault, "", "runtime/default")),
        ),
        (
            field("Unconfined", None),
            Some("runtime/default"),
            field("RuntimeDefault", None),
            Some((Unconfined, "", "unconfined")),
        ),
    ];
    for (of_container, annotation, of_pod, expected) in rows {
        let pod = with(
            shared(|context| context.app_armor_profile = of_pod),
            own(|context| context.app_armor_profile = of_container),
        );
        let pod = pod.edit(|pod| {
            let key = "container.apparmor.security.beta.kubernetes.io/app".to_owned();
            let said = annotation.map(|said| (key, said.to_owned()));
            pod.metadata.annotations = Some(said.into_iter().collect());
        });
        let made = made(pod);
        #[expect(deprecated, reason = "old runtimes read it")]
        let old = made.apparmor_profile.as_str();
        let profile = made.apparmor.as_ref();
        let told =
            profile.map(|profile| (profile.profile_type(), profile.localhost_ref.as_str(), old));
        assert_eq!(told, expected);
        assert_eq!(told.is_none(), old.is_empty());
    }
}
