//! Findings about runtimes: missing, silent, too old, not ready, ready.

use oarsman_core::resources::names::CgroupDriver;
use oarsman_cri::{CriError, ErrorCode};
use oarsman_pod_network::NetworkFinding;

use super::super::runtime::evaluate;
use super::{ExpectedFindings, assert_findings, node, run_mode};
use crate::check::facts::embedded_runtime::EmbeddedRuntimeFacts;
use crate::check::facts::runtime::{ConditionFact, RuntimeAnswer, RuntimeSearch};
use crate::check::finding::FindingSeverity::{Problem, Warning};
use crate::check::requirements::Requirements;

const SOCKET: &str = "unix:///run/containerd/containerd.sock";

/// The answer of the rig's containerd.
fn well() -> RuntimeAnswer {
    RuntimeAnswer {
        endpoint: SOCKET.to_owned(),
        name: "containerd".to_owned(),
        version: "v2.4.2".to_owned(),
        conditions: vec![condition("RuntimeReady", true, ""), condition("NetworkReady", true, "")],
        cgroup_driver: Some(CgroupDriver::Cgroupfs),
        has_systemd: true,
    }
}

fn condition(name: &str, holds: bool, message: &str) -> ConditionFact {
    ConditionFact {
        name: name.to_owned(),
        holds,
        reason: "Because".to_owned(),
        message: message.to_owned(),
    }
}

fn failed(code: ErrorCode, message: &str) -> RuntimeSearch {
    let error = CriError::new("Version", code, message);
    RuntimeSearch::Failed { endpoint: SOCKET.to_owned(), error }
}

fn embedded(obstacles: Result<Vec<NetworkFinding>, String>) -> RuntimeSearch {
    RuntimeSearch::Embedded(EmbeddedRuntimeFacts { obstacles, uncontrolled_devices: None })
}

fn without_device_control() -> RuntimeSearch {
    let error = "cannot load a program that controls devices: Invalid argument";
    RuntimeSearch::Embedded(EmbeddedRuntimeFacts {
        obstacles: Ok(Vec::new()),
        uncontrolled_devices: Some(error.to_owned()),
    })
}

#[test]
fn problems_of_a_runtime_are_reported_with_the_fix() {
    let docker = "unknown service runtime.v1.RuntimeService";
    let rows: Vec<(RuntimeSearch, ExpectedFindings<'_>, &str)> = vec![
        (RuntimeSearch::Answers(well()), &[], ""),
        (embedded(Ok(Vec::new())), &[], ""),
        (
            embedded(Ok(vec![NetworkFinding {
                problem: "the firewall drops".to_owned(),
                fix: "nft insert rule".to_owned(),
            }])),
            &[(Warning, "the firewall drops")],
            "nft insert rule",
        ),
        (
            embedded(Err("operation not permitted".to_owned())),
            &[(Problem, "cannot be used: operation not permitted")],
            "as root",
        ),
        (without_device_control(), &[(Problem, "Invalid argument")], "CONFIG_CGROUP_BPF"),
        (
            RuntimeSearch::Nowhere(vec!["/run/a.sock".to_owned()]),
            &[(Problem, "looked at /run/a.sock")],
            "without --runtime the embedded runtime",
        ),
        (
            RuntimeSearch::Unreachable { endpoint: SOCKET.to_owned(), why: "refused".to_owned() },
            &[(Problem, "nobody listens at unix:///run/containerd/containerd.sock: refused")],
            "systemctl start containerd",
        ),
        (
            failed(ErrorCode::Unimplemented, docker),
            &[(Problem, "does not speak CRI v1: unknown service runtime.v1.RuntimeService")],
            "disabled_plugins = [\"cri\"] in /etc/containerd/config.toml",
        ),
        (
            failed(ErrorCode::DeadlineExceeded, "no answer"),
            &[(Problem, "does not answer")],
            "journalctl -u containerd",
        ),
        (failed(ErrorCode::Internal, "broken"), &[(Problem, "broken")], "journalctl -u containerd"),
        (
            RuntimeSearch::Answers(RuntimeAnswer {
                conditions: vec![condition("NetworkReady", false, "cni plugin not initialized")],
                ..well()
            }),
            &[(Problem, "NetworkReady is false (Because): cni plugin not initialized")],
            "/etc/cni/net.d",
        ),
        (
            RuntimeSearch::Answers(RuntimeAnswer {
                conditions: vec![condition("RuntimeReady", false, "shim")],
                ..well()
            }),
            &[(Problem, "RuntimeReady is false")],
            "journalctl",
        ),
        (
            RuntimeSearch::Answers(RuntimeAnswer {
                conditions: vec![condition(
                    "ContainerdHasNoDeprecationWarnings",
                    false,
                    "old registry",
                )],
                ..well()
            }),
            &[(Warning, "ContainerdHasNoDeprecationWarnings")],
            "journalctl",
        ),
        (
            RuntimeSearch::Answers(RuntimeAnswer { version: "1.4.13~ds1".to_owned(), ..well() }),
            &[(Warning, "older than any")],
            "upgrade",
        ),
        (
            RuntimeSearch::Answers(RuntimeAnswer {
                name: "cri-o".to_owned(),
                version: "1.31.0".to_owned(),
                ..well()
            }),
            &[(Warning, "not played on it")],
            "containerd 1.6",
        ),
    ];
    for (runtime, want, fix) in rows {
        let row = format!("{runtime:?}");
        let findings = evaluate(&runtime, &run_mode());
        assert_findings(&findings, want, &row);
        assert!(
            findings.iter().any(|f| f.fix.as_deref().unwrap_or_default().contains(fix)),
            "{row}: {findings:?}"
        );
    }
}

#[test]
fn the_cgroup_driver_is_the_runtimes_and_must_work_here() {
    let systemd = Requirements { systemd_cgroups: true, ..node() };
    let rows: [(Option<CgroupDriver>, bool, Requirements, ExpectedFindings<'_>); 6] = [
        (Some(CgroupDriver::Cgroupfs), true, node(), &[]),
        (Some(CgroupDriver::Systemd), true, node(), &[]),
        (Some(CgroupDriver::Systemd), false, node(), &[(Problem, "not booted with systemd")]),
        (None, true, node(), &[(Warning, "cgroupfs is taken")]),
        (None, true, systemd.clone(), &[(Warning, "systemd is taken")]),
        (None, false, systemd, &[(Problem, "not booted with systemd")]),
    ];
    for (cgroup_driver, has_systemd, requirements, want) in rows {
        let runtime =
            RuntimeSearch::Answers(RuntimeAnswer { cgroup_driver, has_systemd, ..well() });
        assert_findings(&evaluate(&runtime, &requirements), want, &format!("{runtime:?}"));
    }
}
