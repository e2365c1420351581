//! Which sysctls a pod may set.

use k8s_openapi::api::core::v1::{PodSecurityContext, Sysctl};

use super::*;

const KERNEL: &str = "6.1.0-13-amd64";

fn setting(name: &str, edit: impl FnOnce(&mut PodSpec)) -> Pod {
    let sysctl = Sysctl { name: name.to_owned(), value: "1".to_owned() };
    let security_context =
        Some(PodSecurityContext { sysctls: Some(vec![sysctl]), ..PodSecurityContext::default() });
    let mut spec = PodSpec { security_context, ..PodSpec::default() };
    edit(&mut spec);
    Pod { spec: Some(spec), ..pod("1", 1) }
}

fn answer(kernel: &str, allowed: &[&str], pod: &Pod) -> String {
    let allowed: Vec<String> = allowed.iter().map(|&pattern| pattern.to_owned()).collect();
    match SysctlAllowlist::new(kernel, &allowed).check(pod) {
        Ok(()) => String::new(),
        Err(rejection) => format!("{}: {}", rejection.reason, rejection.message),
    }
}

#[test]
fn the_safe_sysctls_are_allowed_from_the_kernel_on_that_gives_them_a_namespace() {
    let rows = [
        ("kernel.shm_rmid_forced", "2.6.18", true),
        ("net.ipv4.ip_local_port_range", "2.6.18", true),
        ("net.ipv4.tcp_syncookies", "2.6.18", true),
        ("net.ipv4.ping_group_range", "2.6.18", true),
        ("net.ipv4.ip_unprivileged_port_start", "2.6.18", true),
        ("net.ipv4.ip_local_reserved_ports", "3.16", true),
        ("net.ipv4.ip_local_reserved_ports", "3.15.9", false),
        ("net.ipv4.tcp_keepalive_time", "4.5.0", true),
        ("net.ipv4.tcp_keepalive_time", "4.4.302", false),
        ("net.ipv4.tcp_fin_timeout", "4.6", true),
        ("net.ipv4.tcp_fin_timeout", "4.5", false),
        ("net.ipv4.tcp_keepalive_intvl", "4.5", true),
        ("net.ipv4.tcp_keepalive_intvl", "4.4", false),
        ("net.ipv4.tcp_keepalive_probes", "4.5", true),
        ("net.ipv4.tcp_keepalive_probes", "4.4", false),
        ("net.ipv4.tcp_rmem", "4.15", true),
        ("net.ipv4.tcp_rmem", "4.14", false),
        ("net.ipv4.tcp_wmem", "4.15", true),
        ("net.ipv4.tcp_wmem", "4.14", false),
        ("net.ipv4.tcp_wmem", "unreadable", false),
    ];
    for (name, kernel, allowed) in rows {
        let answer = answer(kernel, &[], &setting(name, |_| {}));
        assert_eq!(answer.is_empty(), allowed, "{name} {kernel}: {answer}");
    }
}

#[test]
fn others_are_forbidden_unless_they_are_allowed_by_name_or_pattern() {
    let forbidden =
        |name: &str| format!("SysctlForbidden: forbidden sysctl: \"{name}\" not allowlisted");
    let rows: [(&str, &[&str], Option<&str>); 7] = [
        ("kernel.msgmax", &[], Some("kernel.msgmax")),
        ("kernel.msgmax", &["kernel.msgmax"], None),
        ("kernel.msgmax", &["kernel.msg*"], None),
        ("kernel.sem", &["kernel.msg*"], Some("kernel.sem")),
        ("net/core/somaxconn", &["net.core.somaxconn"], None),
        ("net.core.somaxconn", &["net/core/*"], None),
        ("kernel.shm_rmid_forced2", &[], Some("kernel.shm_rmid_forced2")),
    ];
    for (name, allowed, refused) in rows {
        let expected = refused.map(forbidden).unwrap_or_default();
        assert_eq!(answer(KERNEL, allowed, &setting(name, |_| {})), expected, "{name} {allowed:?}");
    }
}

#[test]
fn a_pod_in_a_namespace_of_the_host_cannot_set_its_sysctls() {
    let of_host = |detail: &str| format!("SysctlForbidden: forbidden sysctl: {detail}");
    let net = setting("net.ipv4.tcp_syncookies", |spec| spec.host_network = Some(true));
    let ipc = setting("kernel.shm_rmid_forced", |spec| spec.host_ipc = Some(true));
    let other = setting("kernel.shm_rmid_forced", |spec| spec.host_network = Some(true));
    let net_detail = "\"net.ipv4.tcp_syncookies\" not allowed with host net enabled";
    assert_eq!(answer(KERNEL, &[], &net), of_host(net_detail));
    let ipc_detail = "\"kernel.shm_rmid_forced\" not allowed with host ipc enabled";
    assert_eq!(answer(KERNEL, &[], &ipc), of_host(ipc_detail));
    assert_eq!(answer(KERNEL, &[], &other), "");
}

#[test]
fn only_sysctls_of_a_namespace_may_be_allowed() {
    let patterns = ["net.*", "kernel.shm*", "kernel.msgmax", "kernel.sem", "fs.mqueue.*"];
    let patterns = patterns.map(str::to_owned);
    assert!(without_namespace(&patterns).is_empty());
    let refused = ["vm.swappiness", "kernel.*", "fs.file-max", "*"].map(str::to_owned);
    assert_eq!(without_namespace(&refused), refused);
}
