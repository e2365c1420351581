//! Runtimes that are away, silent, unfit, or well.

use oarsman_core::resources::names::CgroupDriver;
use oarsman_cri::{Code, CriError};

use super::super::runtime::judge;
use super::{Told, assert_told, guest, node};
use crate::check::facts::runtime::{Answer, Condition, Runtime};
use crate::check::finding::Weight::{Problem, Warning};
use crate::check::plan::Plan;

const SOCKET: &str = "unix:///run/containerd/containerd.sock";

/// As the rig's containerd answers.
fn well() -> Answer {
    Answer {
        endpoint: SOCKET.to_owned(),
        name: "containerd".to_owned(),
        version: "v2.4.2".to_owned(),
        conditions: vec![condition("RuntimeReady", true, ""), condition("NetworkReady", true, "")],
        cgroup_driver: Some(CgroupDriver::Cgroupfs),
        has_systemd: true,
    }
}

fn condition(name: &str, holds: bool, message: &str) -> Condition {
    Condition {
        name: name.to_owned(),
        holds,
        reason: "Because".to_owned(),
        message: message.to_owned(),
    }
}

fn failed(code: Code, message: &str) -> Runtime {
    let error = CriError::new("Version", code, message);
    Runtime::Failed { endpoint: SOCKET.to_owned(), error }
}

#[test]
fn what_is_wrong_with_a_runtime_is_told_with_the_fix() {
    let docker = "unknown service runtime.v1.RuntimeService";
    let rows: Vec<(Runtime, Told<'_>, &str)> = vec![
        (Runtime::Answers(well()), &[], ""),
        (
            Runtime::Nowhere(vec!["/run/a.sock".to_owned()]),
            &[(Problem, "looked at /run/a.sock")],
            "apt-get install",
        ),
        (
            Runtime::Unreachable { endpoint: SOCKET.to_owned(), why: "refused".to_owned() },
            &[(Problem, "nobody listens at unix:///run/containerd/containerd.sock: refused")],
            "systemctl start containerd",
        ),
        (
            failed(Code::Unimplemented, docker),
            &[(Problem, "does not speak CRI v1: unknown service runtime.v1.RuntimeService")],
            "disabled_plugins = [\"cri\"] in /etc/containerd/config.toml",
        ),
        (
            failed(Code::DeadlineExceeded, "no answer"),
            &[(Problem, "does not answer")],
            "journalctl -u containerd",
        ),
        (failed(Code::Internal, "broken"), &[(Problem, "broken")], "journalctl -u containerd"),
        (
            Runtime::Answers(Answer {
                conditions: vec![condition("NetworkReady", false, "cni plugin not initialized")],
                ..well()
            }),
            &[(Problem, "NetworkReady is false (Because): cni plugin not initialized")],
            "/etc/cni/net.d",
        ),
        (
            Runtime::Answers(Answer {
                conditions: vec![condition("RuntimeReady", false, "shim")],
                ..well()
            }),
            &[(Problem, "RuntimeReady is false")],
            "journalctl",
        ),
        (
            Runtime::Answers(Answer {
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
            Runtime::Answers(Answer { version: "1.4.13~ds1".to_owned(), ..well() }),
            &[(Warning, "older than any")],
            "upgrade",
        ),
        (
            Runtime::Answers(Answer {
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
        let findings = judge(&runtime, &guest());
        assert_told(&findings, want, &row);
        assert!(
            findings.iter().any(|f| f.fix.as_deref().unwrap_or_default().contains(fix)),
            "{row}: {findings:?}"
        );
    }
}

#[test]
fn the_cgroup_driver_is_the_runtimes_and_must_work_here() {
    let systemd = Plan { systemd_cgroups: true, ..node() };
    let rows: [(Option<CgroupDriver>, bool, Plan, Told<'_>); 6] = [
        (Some(CgroupDriver::Cgroupfs), true, node(), &[]),
        (Some(CgroupDriver::Systemd), true, node(), &[]),
        (Some(CgroupDriver::Systemd), false, node(), &[(Problem, "not booted with systemd")]),
        (None, true, node(), &[(Warning, "cgroupfs is taken")]),
        (None, true, systemd.clone(), &[(Warning, "systemd is taken")]),
        (None, false, systemd, &[(Problem, "not booted with systemd")]),
    ];
    for (cgroup_driver, has_systemd, plan, want) in rows {
        let runtime = Runtime::Answers(Answer { cgroup_driver, has_systemd, ..well() });
        assert_told(&judge(&runtime, &plan), want, &format!("{runtime:?}"));
    }
}
