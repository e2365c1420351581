//! The order of the handlers, and the small ones among them.

use k8s_openapi::api::core::v1::{
    AppArmorProfile, PodResourceClaim, PodSecurityContext, Sysctl, Toleration,
};

use super::*;
use crate::node::conditions::Pressures;

fn reason(node: &AdmissionNode, pod: &Pod) -> String {
    let handlers = NodeAdmitHandlers::default();
    match handlers.admit(&PodAdmitAttributes { pod, others: &[], node }) {
        Ok(()) => "admitted".to_owned(),
        Err(AdmitRefusal::Rejected(rejection)) => rejection.reason,
        Err(other) => format!("{other:?}"),
    }
}

fn with(edit: impl FnOnce(&mut PodSpec)) -> Pod {
    let mut pod = requesting(pod("1", 1), &[]);
    edit(pod.spec.as_mut().unwrap());
    pod
}

fn sysctl(spec: &mut PodSpec) {
    let sysctl = Sysctl { name: "kernel.msgmax".to_owned(), value: "1".to_owned() };
    spec.security_context.get_or_insert_default().sysctls = Some(vec![sysctl]);
}

fn claim(spec: &mut PodSpec) {
    let claim = PodResourceClaim { name: "gpu".to_owned(), ..PodResourceClaim::default() };
    spec.resource_claims = Some(vec![claim]);
}

fn elsewhere(spec: &mut PodSpec) {
    spec.node_name = Some("n2".to_owned());
}

fn app_armor(kind: &str) -> impl Fn(&mut PodSpec) {
    let kind = kind.to_owned();
    move |spec| {
        let profile = AppArmorProfile { type_: kind.clone(), ..AppArmorProfile::default() };
        let context = spec.security_context.get_or_insert_default();
        context.app_armor_profile = Some(profile);
    }
}

#[test]
fn the_first_handler_that_does_not_admit_a_pod_decides() {
    let mut node = node(&[("pods", "9")]);
    let everything = with(|spec| {
        sysctl(spec);
        claim(spec);
        elsewhere(spec);
        app_armor("RuntimeDefault")(spec);
    });
    node.pressures.disk = true;
    assert_eq!(reason(&node, &everything), "Evicted");
    node.pressures.disk = false;
    assert_eq!(reason(&node, &everything), "SysctlForbidden");
    let rest = with(|spec| {
        claim(spec);
        elsewhere(spec);
        app_armor("RuntimeDefault")(spec);
    });
    assert_eq!(reason(&node, &rest), "PodFeatureUnsupported");
    let rest = with(|spec| {
        elsewhere(spec);
        app_armor("RuntimeDefault")(spec);
    });
    assert_eq!(reason(&node, &rest), "NodeName");
    assert_eq!(reason(&node, &with(app_armor("RuntimeDefault"))), "AppArmor");
    assert_eq!(reason(&node, &with(|_| {})), "admitted");
}

#[test]
fn under_pressure_only_critical_pods_come_in_and_of_memory_also_those_that_requested_some() {
    let memory = Pressures { memory: true, ..Pressures::default() };
    let both = Pressures { pids: true, ..memory };
    let best_effort = with(|_| {});
    let tolerant = with(|spec| {
        spec.tolerations = Some(vec![Toleration {
            key: Some("node.kubernetes.io/memory-pressure".to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some("NoSchedule".to_owned()),
            ..Toleration::default()
        }]);
    });
    let burstable = requesting(pod("1", 1), &[("memory", "1")]);
    let of_node = critical(with(|_| {}));
    let rows = [
        (memory, &best_effort, "Evicted"),
        (memory, &tolerant, "admitted"),
        (memory, &burstable, "admitted"),
        (memory, &of_node, "admitted"),
        (both, &tolerant, "Evicted"),
        (both, &burstable, "Evicted"),
        (both, &of_node, "admitted"),
    ];
    for (pressures, pod, expected) in rows {
        let node = AdmissionNode { pressures, ..node(&[("pods", "9"), ("memory", "9")]) };
        assert_eq!(reason(&node, pod), expected, "{pressures:?}");
    }
}

#[test]
fn a_profile_of_app_armor_needs_a_kernel_that_has_it_unless_it_confines_nothing() {
    let node = node(&[("pods", "9")]);
    let enabled = NodeAdmitHandlers { app_armor: true, ..NodeAdmitHandlers::default() };
    for (kind, expected) in
        [("Localhost", "AppArmor"), ("RuntimeDefault", "AppArmor"), ("Unconfined", "admitted")]
    {
        let pod = with(app_armor(kind));
        assert_eq!(reason(&node, &pod), expected, "{kind}");
        let attributes = PodAdmitAttributes { pod: &pod, others: &[], node: &node };
        assert_eq!(enabled.admit(&attributes), Ok(()));
    }
    let mut annotated = with(|_| {});
    let key = "container.apparmor.security.beta.kubernetes.io/c".to_owned();
    annotated.metadata.annotations = Some([(key, "runtime/default".to_owned())].into());
    assert_eq!(reason(&node, &annotated), "AppArmor");
}

#[test]
fn the_policy_strict_for_groups_needs_a_runtime_that_heeds_it() {
    let strict = with(|spec| {
        spec.security_context = Some(PodSecurityContext {
            supplemental_groups_policy: Some("Strict".to_owned()),
            ..PodSecurityContext::default()
        });
    });
    let rows = [
        (Some(false), "SupplementalGroupsPolicyNotSupported"),
        (Some(true), "admitted"),
        (None, "admitted"),
    ];
    for (supplemental_groups_policy, expected) in rows {
        let node = AdmissionNode { supplemental_groups_policy, ..node(&[("pods", "9")]) };
        assert_eq!(reason(&node, &strict), expected);
    }
}
