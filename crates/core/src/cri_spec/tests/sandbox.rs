//! What a sandbox is made with.

use k8s_openapi::api::core::v1::{ContainerPort, PodSecurityContext, Sysctl};
use oarsman_cri_types::v1::{PodSandboxConfig, PortMapping, Protocol};

use super::node;
use crate::cri_spec::dns::DnsWarning;
use crate::cri_spec::{PodGrants, generate_pod_sandbox_config};
use crate::fixture::{PodBuilder, pod};
use crate::labels::ROOT_ANNOTATION;

fn made(pod: PodBuilder) -> PodSandboxConfig {
    let made =
        generate_pod_sandbox_config(&pod.build(), 3, &PodGrants::default(), &node().context())
            .unwrap();
    assert_eq!((made.warnings, made.handler.as_str()), (Vec::new(), ""));
    made.config
}

#[test]
fn a_sandbox_config_has_the_pods_identity_and_paths() {
    let config = made(pod().regular("app"));
    let metadata = config.metadata.unwrap();
    assert_eq!((metadata.name.as_str(), metadata.namespace.as_str()), ("web", "default"));
    assert_eq!((metadata.uid.as_str(), metadata.attempt), ("uid-web", 3));
    assert_eq!(config.annotations[ROOT_ANNOTATION], "/var/lib/kubelet");
    assert_eq!(config.labels["io.kubernetes.pod.uid"], "uid-web");
    assert_eq!(config.log_directory, "/var/log/pods/default_web_uid-web");
    assert_eq!(config.dns_config.unwrap().servers, ["10.96.0.10"]);
    let linux = config.linux.unwrap();
    assert_eq!(linux.cgroup_parent, "/kubepods/besteffort/poduid-web");
    assert_eq!(linux.resources.unwrap().cpu_shares, 2);
    assert_eq!(linux.overhead, Some(Default::default()));
}

#[test]
fn a_sandbox_is_named_unless_it_has_the_nodes_network() {
    let named = |pod: PodBuilder| made(pod).hostname;
    assert_eq!(named(pod()), "web");
    assert_eq!(named(pod().spec(|spec| spec.hostname = Some("db".to_owned()))), "db");
    assert_eq!(named(pod().host_network()), "");
}

#[test]
fn dns_warnings_are_returned_with_the_sandbox_config() {
    let mut node = node();
    node.settings.dns.servers.clear();
    node.settings.dns.has_cluster = true;
    let made =
        generate_pod_sandbox_config(&pod().build(), 0, &PodGrants::default(), &node.context())
            .unwrap();
    assert_eq!(made.warnings, [DnsWarning::NoClusterServers]);
    assert_eq!(made.config.dns_config.unwrap().servers, ["192.0.2.53"]);
}

#[test]
fn ports_of_all_regular_containers_are_mapped_once() {
    let port =
        |container: i32, host: Option<i32>, protocol: &str, name: Option<&str>| ContainerPort {
            container_port: container,
            host_port: host,
            host_ip: host.map(|_| "127.0.0.1".to_owned()),
            protocol: Some(protocol.to_owned()),
            name: name.map(str::to_owned),
        };
    let pod = pod()
        .regular_with("app", |spec| {
            spec.ports = Some(vec![
                port(80, Some(8080), "TCP", None),
                port(80, Some(8080), "TCP", None),
                port(53, None, "UDP", Some("dns")),
                port(54, None, "UDP", Some("dns")),
            ]);
        })
        .regular_with("side", |spec| {
            spec.ports = Some(vec![port(9, Some(9), "SCTP", Some("dns"))]);
        })
        .init_with("setup", |spec| spec.ports = Some(vec![port(1, Some(1), "TCP", None)]));
    let mapping = |container_port, host_port, protocol: Protocol, ip: &str| PortMapping {
        protocol: protocol.into(),
        container_port,
        host_port,
        host_ip: ip.to_owned(),
    };
    let expected = [
        mapping(80, 8080, Protocol::Tcp, "127.0.0.1"),
        mapping(53, 0, Protocol::Udp, ""),
        mapping(9, 9, Protocol::Sctp, "127.0.0.1"),
    ];
    assert_eq!(made(pod).port_mappings, expected);
}

#[test]
fn sysctls_are_spelled_with_dots() {
    let sysctl =
        |name: &str, value: &str| Sysctl { name: name.to_owned(), value: value.to_owned() };
    let wanted =
        vec![sysctl("net/ipv4/tcp_syncookies", "0"), sysctl("kernel.shm_rmid_forced", "1")];
    let context = PodSecurityContext { sysctls: Some(wanted), ..Default::default() };
    let pod = pod().spec(|spec| spec.security_context = Some(context));
    let sysctls = made(pod).linux.unwrap().sysctls;
    let expected = [("kernel.shm_rmid_forced", "1"), ("net.ipv4.tcp_syncookies", "0")];
    assert_eq!(sysctls, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[test]
fn a_sandbox_that_cannot_be_described_is_refused_with_the_field_to_change() {
    let rows = [
        (pod().spec(|spec| spec.host_users = Some(false)), "spec.hostUsers is false"),
        (
            pod().spec(|spec| spec.runtime_class_name = Some("gvisor".to_owned())),
            "spec.runtimeClassName: no RuntimeClass \"gvisor\" is known",
        ),
        (
            pod().spec(|spec| {
                spec.hostname = Some("h".repeat(63));
                spec.subdomain = Some("sub".to_owned());
                spec.set_hostname_as_fqdn = Some(true);
            }),
            "or unset spec.setHostnameAsFQDN",
        ),
    ];
    for (pod, part) in rows {
        let made =
            generate_pod_sandbox_config(&pod.build(), 0, &PodGrants::default(), &node().context());
        let error = made.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_runtime_class_brings_its_handler() {
    let pod = pod().spec(|spec| spec.runtime_class_name = Some("gvisor".to_owned())).build();
    let runtime_handler = Some("runsc".to_owned());
    let grants = PodGrants { runtime_handler, ..PodGrants::default() };
    assert_eq!(
        generate_pod_sandbox_config(&pod, 0, &grants, &node().context()).unwrap().handler,
        "runsc"
    );
}
