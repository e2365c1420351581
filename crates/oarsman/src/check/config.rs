//! Checks a kubelet's configuration file with a strict parser, and derives the requirements on the machine from it.

use std::fs;
use std::path::{Path, PathBuf};

use oarsman_kubelet_config::enums::CgroupDriverSetting;
use oarsman_kubelet_config::{ConfigFile, KubeletConfiguration, Problem, check, load};

use super::finding::Finding;
use super::requirements::Requirements;
use crate::runtime_endpoint::{NamedRuntime, RuntimeEndpoint};

const CHECK: &str = "configuration";

/// The findings about the file, and the configuration if it can be used.
pub(super) fn read(path: &Path) -> (Vec<Finding>, Option<KubeletConfiguration>) {
    match fs::read(path) {
        Ok(bytes) => evaluate(path, &bytes),
        Err(error) => {
            let what = format!("{} cannot be read: {error}", path.display());
            (vec![Finding::problem(CHECK, what, "name the right file with --config")], None)
        }
    }
}

fn evaluate(path: &Path, bytes: &[u8]) -> (Vec<Finding>, Option<KubeletConfiguration>) {
    let (text, fix) = (ConfigFile { path, bytes }, format!("edit {}", path.display()));
    let finding = |problem: &Problem| Finding::problem(CHECK, problem.to_string(), fix.as_str());
    let mut findings: Vec<Finding> = check(text).iter().map(finding).collect();
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, format!("{} is well", path.display())));
    }
    // An unknown field is no reason for a kubelet not to start.
    (findings, load(Some(text), &[], &[]).ok().map(|loaded| loaded.configuration))
}

/// The requirements of a node with this configuration.
pub(super) fn requirements(
    configuration: &KubeletConfiguration,
    root: PathBuf,
    runtime: Option<NamedRuntime>,
) -> Requirements {
    let configured =
        || match RuntimeEndpoint::of_configuration(&configuration.container_runtime_endpoint) {
            RuntimeEndpoint::Embedded => NamedRuntime::Embedded,
            RuntimeEndpoint::Socket(address) => NamedRuntime::Socket(address),
        };
    let runtime = runtime.unwrap_or_else(configured);
    let resolv_conf = PathBuf::from(&configuration.resolv_conf);
    Requirements {
        is_node: true,
        pod_logs: PathBuf::from(&configuration.pod_logs_dir),
        resolv_conf: Some(resolv_conf).filter(|path| !path.as_os_str().is_empty()),
        ports: ports(configuration),
        systemd_cgroups: configuration.cgroup_driver == CgroupDriverSetting::Systemd,
        fails_on_swap: configuration.fail_swap_on,
        fails_on_cgroup_v1: configuration.fail_cgroup_v1,
        protects_kernel: configuration.protect_kernel_defaults,
        ..Requirements::for_run_mode(root, runtime)
    }
}

/// The ports that the kubelet would listen on.
fn ports(configuration: &KubeletConfiguration) -> Vec<(&'static str, u16)> {
    let server = if configuration.enable_server { configuration.port } else { 0 };
    let all = [
        ("port", server),
        ("readOnlyPort", configuration.read_only_port),
        ("healthzPort", configuration.healthz_port),
    ];
    let port = |(field, number): (&'static str, i32)| {
        u16::try_from(number).ok().filter(|number| *number > 0).map(|number| (field, number))
    };
    all.into_iter().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingSeverity;
    use super::*;

    const HEAD: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

    fn evaluated(rest: &str) -> (Vec<Finding>, Option<KubeletConfiguration>) {
        evaluate(Path::new("/etc/kubelet.yaml"), format!("{HEAD}{rest}").as_bytes())
    }

    #[test]
    fn an_unknown_field_is_a_problem_here_though_a_kubelet_starts_with_it() {
        let (findings, configuration) = evaluated("maxPodz: 7\nport: 1\n");
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].weight, FindingSeverity::Problem);
        assert!(findings[0].what.contains("maxPodz"), "{findings:?}");
        assert_eq!(findings[0].fix.as_deref(), Some("edit /etc/kubelet.yaml"));
        assert_eq!(configuration.unwrap().port, 1);
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let (findings, configuration) = evaluated("port: 70000\ncontainerLogMaxFiles: 1\n");
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(configuration.is_none());
    }

    #[test]
    fn the_requirements_follow_from_the_configuration_file() {
        let (findings, configuration) = evaluated(
            "failSwapOn: false\nfailCgroupV1: false\nreadOnlyPort: 10255\nhealthzPort: 0\nresolvConf: \"\"\ncgroupDriver: systemd\n",
        );
        assert_eq!(findings[0].weight, FindingSeverity::Ok, "{findings:?}");
        let requirements = requirements(&configuration.unwrap(), "/var/lib/kubelet".into(), None);
        assert!(requirements.is_node && requirements.systemd_cgroups);
        assert!(
            !requirements.fails_on_swap
                && !requirements.fails_on_cgroup_v1
                && !requirements.protects_kernel
        );
        assert_eq!(requirements.ports, [("port", 10250), ("readOnlyPort", 10255)]);
        assert_eq!(requirements.resolv_conf, None);
        let containerd = "unix:///run/containerd/containerd.sock".to_owned();
        assert_eq!(requirements.runtime, NamedRuntime::Socket(containerd));
    }

    #[test]
    fn a_file_that_is_not_there_is_a_problem() {
        let (findings, configuration) = read(Path::new("/no/such/kubelet.yaml"));
        assert_eq!(findings[0].weight, FindingSeverity::Problem);
        assert!(findings[0].what.starts_with("/no/such/kubelet.yaml cannot be read"));
        assert!(configuration.is_none());
    }
}
