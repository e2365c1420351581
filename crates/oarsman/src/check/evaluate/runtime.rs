//! Checks that a container runtime answers, is recent enough and ready, and has a cgroup driver that works here.

use oarsman_core::resources::names::CgroupDriver;
use oarsman_cri::CriError;

use super::embedded_runtime;
use crate::check::facts::runtime::{ConditionFact, RuntimeAnswer, RuntimeSearch};
use crate::check::finding::Finding;
use crate::check::requirements::Requirements;

const CHECK: &str = "runtime";
/// The major and minor version of the oldest containerd that is tested.
const OLDEST_CONTAINERD: (u32, u32) = (1, 6);

pub(super) fn evaluate(runtime: &RuntimeSearch, requirements: &Requirements) -> Vec<Finding> {
    match runtime {
        RuntimeSearch::Embedded(facts) => embedded_runtime::evaluate(facts),
        RuntimeSearch::Nowhere(looked) => vec![Finding::problem(
            CHECK,
            format!("none was found (looked at {})", looked.join(", ")),
            "start it or name its socket with --runtime; without --runtime the embedded runtime is used",
        )],
        RuntimeSearch::Unreachable { endpoint, why } => vec![Finding::problem(
            CHECK,
            format!("nobody listens at {endpoint}: {why}"),
            "systemctl start containerd, or name another socket with --runtime",
        )],
        RuntimeSearch::Failed { endpoint, error } => vec![failed(endpoint, error)],
        RuntimeSearch::Answers(answer) => answered(answer, requirements),
    }
}

fn failed(endpoint: &str, error: &CriError) -> Finding {
    if error.is_unimplemented() {
        return Finding::problem(
            CHECK,
            format!("{endpoint} does not speak CRI v1: {}", error.message()),
            "take \"cri\" out of the line disabled_plugins = [\"cri\"] in /etc/containerd/config.toml (Docker's packages \
             turn it off so), then systemctl restart containerd; a containerd before 1.6 has to be upgraded",
        );
    }
    if error.is_timeout() {
        return Finding::problem(
            CHECK,
            format!("{endpoint} takes calls but does not answer: {error}"),
            "look why with journalctl -u containerd, then systemctl restart containerd (containers live on)",
        );
    }
    Finding::problem(
        CHECK,
        format!("{endpoint} answers with an error: {error}"),
        "look why with journalctl -u containerd",
    )
}

fn answered(answer: &RuntimeAnswer, requirements: &Requirements) -> Vec<Finding> {
    let mut findings = vec![version(answer)];
    findings.extend(answer.conditions.iter().filter_map(condition));
    findings.push(driver(answer, requirements));
    findings
}

fn version(answer: &RuntimeAnswer) -> Finding {
    let RuntimeAnswer { endpoint, name, version, .. } = answer;
    let what = format!("{name} {version} answers at {endpoint}");
    match (name.as_str(), major_minor(version)) {
        ("containerd", Some(numbers)) if numbers >= OLDEST_CONTAINERD => Finding::ok(CHECK, what),
        ("containerd", Some(_)) => Finding::warning(
            CHECK,
            format!("{what}, which is older than any that was tried"),
            "upgrade to containerd 1.6 or newer",
        ),
        _ => Finding::warning(
            CHECK,
            format!("{what}; Oarsman's tests are not played on it"),
            "nothing has to be done; should pods not run, try containerd 1.6 or newer",
        ),
    }
}

/// The first two numbers of a version such as `v2.4.2` or `1.6.20~ds1`.
pub(super) fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn condition(condition: &ConditionFact) -> Option<Finding> {
    if condition.holds {
        return None;
    }
    let ConditionFact { name, reason, message, .. } = condition;
    let what = format!("{name} is false ({reason}): {message}");
    Some(match name.as_str() {
        "NetworkReady" => Finding::problem(
            "pod network",
            what,
            "put a CNI configuration into /etc/cni/net.d and the plugins into /opt/cni/bin (apt-get install \
             containernetworking-plugins puts them into /usr/lib/cni); until then only pods with hostNetwork: true start",
        ),
        "RuntimeReady" => Finding::problem(CHECK, what, "look why with journalctl -u containerd"),
        _ => Finding::warning(CHECK, what, "look why with journalctl -u containerd"),
    })
}

fn driver(answer: &RuntimeAnswer, requirements: &Requirements) -> Finding {
    const CHECK: &str = "cgroup driver";
    let ours =
        if requirements.systemd_cgroups { CgroupDriver::Systemd } else { CgroupDriver::Cgroupfs };
    let driver = answer.cgroup_driver.unwrap_or(ours);
    let name = driver_name(driver);
    if driver == CgroupDriver::Systemd && !answer.has_systemd {
        return Finding::problem(
            CHECK,
            "is systemd, but this machine was not booted with systemd",
            "write SystemdCgroup = false into /etc/containerd/config.toml and cgroupDriver: cgroupfs into the kubelet's \
             configuration, then restart containerd",
        );
    }
    match answer.cgroup_driver {
        Some(_) => Finding::ok(CHECK, format!("{name}, as the runtime says")),
        None => Finding::warning(
            CHECK,
            format!("the runtime does not tell which one it uses; {name} is taken"),
            format!(
                "make sure that /etc/containerd/config.toml says SystemdCgroup = {}, or set cgroupDriver in the kubelet's \
                 configuration to the other",
                driver == CgroupDriver::Systemd
            ),
        ),
    }
}

fn driver_name(driver: CgroupDriver) -> &'static str {
    match driver {
        CgroupDriver::Cgroupfs => "cgroupfs",
        CgroupDriver::Systemd => "systemd",
    }
}
