//! What a container reads in `/etc/hosts`.

use k8s_openapi::api::core::v1::{Container, HostAlias, Pod};

use super::hostname::Hostname;
use crate::pod::PodExt;

/// Where a container looks for it.
pub const HOSTS_PATH: &str = "/etc/hosts";

const HEADER: &str = "# Kubernetes-managed hosts file.\n";
const HOST_NETWORK_HEADER: &str = "# Kubernetes-managed hosts file (host network).\n";
const LOCAL: &str = "127.0.0.1\tlocalhost\n\
    ::1\tlocalhost ip6-localhost ip6-loopback\n\
    fe00::0\tip6-localnet\n\
    fe00::0\tip6-mcastprefix\n\
    fe00::1\tip6-allnodes\n\
    fe00::2\tip6-allrouters\n";

/// Whether we give the container a hosts file: the pod's network must be known, and nothing else be mounted there.
pub fn is_ours(pod: &Pod, spec: &Container, ips: &[String]) -> bool {
    let mounts = spec.volume_mounts.as_deref().unwrap_or_default();
    (pod.host_network() || !ips.is_empty())
        && mounts.iter().all(|mount| mount.mount_path != HOSTS_PATH)
}

/// The file of a pod: its own names, or with the node's network those of the node's file.
pub fn content(pod: &Pod, hostname: &Hostname, ips: &[String], of_node: &str) -> String {
    let aliases = pod.spec().and_then(|spec| spec.host_aliases.as_deref()).unwrap_or_default();
    let aliases = alias_lines(aliases);
    if pod.host_network() {
        return format!("{HOST_NETWORK_HEADER}{of_node}{aliases}");
    }
    let own: String = ips.iter().map(|ip| own_line(ip, hostname)).collect();
    format!("{HEADER}{LOCAL}{own}{aliases}")
}

fn own_line(ip: &str, hostname: &Hostname) -> String {
    let name = &hostname.name;
    match &hostname.domain {
        Some(domain) => format!("{ip}\t{name}.{domain}\t{name}\n"),
        None => format!("{ip}\t{name}\n"),
    }
}

fn alias_lines(aliases: &[HostAlias]) -> String {
    if aliases.is_empty() {
        return String::new();
    }
    let line = |alias: &HostAlias| {
        format!("{}\t{}\n", alias.ip, alias.hostnames.as_deref().unwrap_or_default().join("\t"))
    };
    let lines: String = aliases.iter().map(line).collect();
    format!("\n# Entries added by HostAliases.\n{lines}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::VolumeMount;

    use super::*;
    use crate::fixture::{PodBuilder, pod};

    fn with_aliases() -> PodBuilder {
        let alias = |ip: &str, names: &[&str]| HostAlias {
            ip: ip.to_owned(),
            hostnames: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        };
        let aliases = vec![alias("10.1.2.3", &["foo", "bar"]), alias("10.4.5.6", &["baz"])];
        pod().spec(|spec| spec.host_aliases = Some(aliases))
    }

    fn named(domain: Option<&str>) -> Hostname {
        Hostname { name: "web".to_owned(), domain: domain.map(str::to_owned) }
    }

    const ALIASES: &str = "\n# Entries added by HostAliases.\n10.1.2.3\tfoo\tbar\n10.4.5.6\tbaz\n";

    #[test]
    fn a_pod_of_its_own_network_finds_itself() {
        let local = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n\
            ::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n\
            fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n";
        let ips = ["10.0.0.7".to_owned(), "fd00::7".to_owned()];
        let rows = [
            (pod(), named(None), "10.0.0.7\tweb\nfd00::7\tweb\n".to_owned()),
            (
                pod(),
                named(Some("s.default.svc.cluster.local")),
                "10.0.0.7\tweb.s.default.svc.cluster.local\tweb\n\
                 fd00::7\tweb.s.default.svc.cluster.local\tweb\n"
                    .to_owned(),
            ),
            (with_aliases(), named(None), format!("10.0.0.7\tweb\nfd00::7\tweb\n{ALIASES}")),
        ];
        for (pod, hostname, expected) in rows {
            let content = content(&pod.build(), &hostname, &ips, "not this");
            assert_eq!(content, format!("{local}{expected}"));
        }
    }

    #[test]
    fn a_pod_of_the_nodes_network_reads_the_nodes_file() {
        let pod = with_aliases().host_network().build();
        let content = content(&pod, &named(None), &["192.0.2.1".to_owned()], "192.0.2.1 node\n");
        let header = "# Kubernetes-managed hosts file (host network).\n";
        assert_eq!(content, format!("{header}192.0.2.1 node\n{ALIASES}"));
    }

    #[test]
    fn the_file_is_ours_once_there_is_a_network_and_nothing_else_is_mounted_there() {
        let ip = ["10.0.0.7".to_owned()];
        let mounted = |path: &str| {
            let mount = VolumeMount { mount_path: path.to_owned(), ..VolumeMount::default() };
            Container { volume_mounts: Some(vec![mount]), ..Container::default() }
        };
        let rows = [
            (pod(), Container::default(), &ip[..], true),
            (pod(), Container::default(), &[], false),
            (pod().host_network(), Container::default(), &[], true),
            (pod(), mounted("/etc/hosts"), &ip[..], false),
            (pod(), mounted("/etc"), &ip[..], true),
        ];
        for (pod, spec, ips, expected) in rows {
            assert_eq!(is_ours(&pod.build(), &spec, ips), expected, "{spec:?} {ips:?}");
        }
    }
}
