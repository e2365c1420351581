//! From a pod to the CRI messages that make its sandbox and containers.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use oarsman_cri_types::v1::{
    ContainerConfig, ContainerMetadata, ImageSpec, KeyValue, LinuxPodSandboxConfig,
    LinuxSandboxSecurityContext, NamespaceMode, NamespaceOption, PodSandboxConfig,
    PodSandboxMetadata,
};

use crate::container_config::{
    container_annotations, container_labels, sandbox_annotations, sandbox_labels,
};
use crate::ledger::ROOT_ANNOTATION;
use crate::pod::PodExt;

/// The longest name a host may have.
const HOSTNAME: usize = 63;

/// Where on this machine a pod lives.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The root directory of the agent: its mark on what it makes.
    pub root: &'a str,
    /// Where pods' log directories lie.
    pub pod_logs: &'a Path,
}

/// A pod's log directory.
pub fn log_directory(pod_logs: &Path, pod: &Pod) -> PathBuf {
    let name = pod.full_name();
    pod_logs.join(format!("{}_{}_{}", name.namespace, name.name, pod.uid()))
}

/// What a pod's sandbox is made with.
pub fn sandbox(pod: &Pod, attempt: u32, place: &Place<'_>) -> PodSandboxConfig {
    let name = pod.full_name();
    let mut annotations = sandbox_annotations(pod);
    annotations.insert(ROOT_ANNOTATION.to_owned(), place.root.to_owned());
    PodSandboxConfig {
        hostname: if pod.host_network() { String::new() } else { hostname(pod) },
        metadata: Some(PodSandboxMetadata {
            name: name.name,
            namespace: name.namespace,
            uid: pod.uid().to_string(),
            attempt,
        }),
        log_directory: log_directory(place.pod_logs, pod).to_string_lossy().into_owned(),
        labels: sandbox_labels(pod),
        annotations,
        linux: Some(LinuxPodSandboxConfig {
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: pod.spec().map(namespaces),
                ..LinuxSandboxSecurityContext::default()
            }),
            ..LinuxPodSandboxConfig::default()
        }),
        ..PodSandboxConfig::default()
    }
}

/// What a container is made with: `image` is what the runtime knows its image as.
pub fn container(pod: &Pod, spec: &Container, image: &str, restart_count: u32) -> ContainerConfig {
    let annotations = container_annotations(pod, spec, restart_count, Default::default());
    ContainerConfig {
        metadata: Some(ContainerMetadata { name: spec.name.clone(), attempt: restart_count }),
        image: Some(ImageSpec {
            image: image.to_owned(),
            user_specified_image: spec.image.clone().unwrap_or_default(),
            ..ImageSpec::default()
        }),
        command: spec.command.clone().unwrap_or_default(),
        args: spec.args.clone().unwrap_or_default(),
        working_dir: spec.working_dir.clone().unwrap_or_default(),
        envs: environment(spec),
        labels: container_labels(pod, spec),
        annotations,
        log_path: log_path(&spec.name, restart_count),
        stdin: spec.stdin.unwrap_or_default(),
        stdin_once: spec.stdin_once.unwrap_or_default(),
        tty: spec.tty.unwrap_or_default(),
        ..ContainerConfig::default()
    }
}

/// A container's log file, below its pod's log directory.
pub fn log_path(container: &str, restart_count: u32) -> String {
    format!("{container}/{restart_count}.log")
}

/// Variables with a plain value; those that come from elsewhere are the shell's to resolve.
fn environment(spec: &Container) -> Vec<KeyValue> {
    let plain = spec.env.iter().flatten().filter(|variable| variable.value_from.is_none());
    let pair = plain.map(|variable| KeyValue {
        key: variable.name.clone(),
        value: variable.value.clone().unwrap_or_default().into_bytes(),
    });
    pair.collect()
}

fn namespaces(spec: &PodSpec) -> NamespaceOption {
    let node_or = |on_node: Option<bool>, otherwise| match on_node {
        Some(true) => NamespaceMode::Node,
        Some(false) | None => otherwise,
    };
    let pid = match spec.share_process_namespace {
        Some(true) => NamespaceMode::Pod,
        Some(false) | None => NamespaceMode::Container,
    };
    NamespaceOption {
        network: node_or(spec.host_network, NamespaceMode::Pod).into(),
        ipc: node_or(spec.host_ipc, NamespaceMode::Pod).into(),
        pid: node_or(spec.host_pid, pid).into(),
        ..NamespaceOption::default()
    }
}

fn hostname(pod: &Pod) -> String {
    let wanted = pod.spec().and_then(|spec| spec.hostname.clone()).filter(|name| !name.is_empty());
    let name = wanted.unwrap_or_else(|| pod.full_name().name);
    let cut = &name[..name.floor_char_boundary(HOSTNAME)];
    cut.trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> Pod {
        let mut pod = Pod { spec: Some(PodSpec::default()), ..Pod::default() };
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.namespace = Some("ns".to_owned());
        pod.metadata.uid = Some("uid".to_owned());
        pod
    }

    fn place() -> Place<'static> {
        Place { root: "/root", pod_logs: Path::new("/var/log/pods") }
    }

    #[test]
    fn a_hostname_is_cut_to_what_a_host_may_have() {
        let long = format!("{}-tail", "x".repeat(62));
        for (name, hostname) in [
            ("web", "web".to_owned()),
            (long.as_str(), "x".repeat(62)),
            ("web.-", "web".to_owned()),
        ] {
            assert_eq!(sandbox(&pod(name), 0, &place()).hostname, hostname, "{name}");
        }
        let mut named = pod("web");
        named.spec.get_or_insert_default().hostname = Some("db".to_owned());
        assert_eq!(sandbox(&named, 0, &place()).hostname, "db");
        named.spec.get_or_insert_default().host_network = Some(true);
        assert_eq!(sandbox(&named, 0, &place()).hostname, "");
    }

    #[test]
    fn namespaces_are_the_nodes_the_pods_or_the_containers() {
        let modes = |change: fn(&mut PodSpec)| {
            let mut spec = PodSpec::default();
            change(&mut spec);
            let options = namespaces(&spec);
            (options.network(), options.ipc(), options.pid())
        };
        use NamespaceMode::{Container, Node, Pod};
        assert_eq!(modes(|_| {}), (Pod, Pod, Container));
        assert_eq!(modes(|spec| spec.host_network = Some(true)), (Node, Pod, Container));
        assert_eq!(modes(|spec| spec.host_ipc = Some(true)), (Pod, Node, Container));
        assert_eq!(modes(|spec| spec.share_process_namespace = Some(true)), (Pod, Pod, Pod));
        assert_eq!(modes(|spec| spec.host_pid = Some(true)), (Pod, Pod, Node));
    }

    #[test]
    fn a_sandbox_carries_the_mark_of_its_agent_and_its_own_log_directory() {
        let config = sandbox(&pod("web"), 3, &place());
        assert_eq!(config.annotations.get(ROOT_ANNOTATION).map(String::as_str), Some("/root"));
        assert_eq!(config.log_directory, "/var/log/pods/ns_web_uid");
        assert_eq!(config.metadata.map(|metadata| metadata.attempt), Some(3));
    }

    #[test]
    fn a_containers_log_and_attempt_follow_its_restart_count() {
        let spec = Container { name: "main".to_owned(), ..Container::default() };
        let config = container(&pod("web"), &spec, "sha256:1", 4);
        assert_eq!(config.log_path, "main/4.log");
        assert_eq!(config.metadata.map(|metadata| metadata.attempt), Some(4));
    }
}
