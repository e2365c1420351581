//! Probes, and the handlers they share with hooks.

use k8s_openapi::api::core::v1::{
    Container, ExecAction, GRPCAction, HTTPGetAction, Probe, SleepAction, TCPSocketAction,
};

use super::context::PodValidationContext;
use super::{names, ports};
use crate::api::error::Errors;
use crate::api::path::Path;

const SCHEMES: [&str; 2] = ["HTTP", "HTTPS"];

pub(super) fn check(
    at: &Path,
    container: &Container,
    around: &PodValidationContext<'_>,
    errors: &mut Errors,
) {
    if let Some(probe) = &container.liveness_probe {
        let at = at.child("livenessProbe");
        check_probe(&at, probe, around, errors);
        check_one_success(&at, probe, errors);
    }
    if let Some(probe) = &container.readiness_probe {
        let at = at.child("readinessProbe");
        check_probe(&at, probe, around, errors);
        if let Some(grace) = probe.termination_grace_period_seconds {
            let detail = "a readiness probe stops nothing, so it has no grace";
            errors.invalid(&at.child("terminationGracePeriodSeconds"), grace, detail);
        }
    }
    if let Some(probe) = &container.startup_probe {
        let at = at.child("startupProbe");
        check_probe(&at, probe, around, errors);
        check_one_success(&at, probe, errors);
    }
}

fn check_one_success(at: &Path, probe: &Probe, errors: &mut Errors) {
    if let Some(threshold) = probe.success_threshold.filter(|threshold| *threshold != 1) {
        errors.invalid(&at.child("successThreshold"), threshold, "must be 1");
    }
}

fn check_probe(at: &Path, probe: &Probe, around: &PodValidationContext<'_>, errors: &mut Errors) {
    let handler = Handler {
        exec: probe.exec.as_ref(),
        http_get: probe.http_get.as_ref(),
        tcp_socket: probe.tcp_socket.as_ref(),
        grpc: probe.grpc.as_ref(),
        sleep: None,
    };
    handler.check(at, around, errors);
    check_numbers(at, probe, errors);
    if let Some(grace) = probe.termination_grace_period_seconds.filter(|grace| *grace <= 0) {
        let at = at.child("terminationGracePeriodSeconds");
        errors.invalid(&at, grace, "must be at least one second");
    }
}

fn check_numbers(at: &Path, probe: &Probe, errors: &mut Errors) {
    let numbers = [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ];
    for (field, number) in numbers {
        if let Some(number) = number.filter(|number| *number < 0) {
            errors.invalid(&at.child(field), number, "must not be negative");
        }
    }
}

/// What a probe or a hook does: one of these.
pub(super) struct Handler<'a> {
    pub(super) exec: Option<&'a ExecAction>,
    pub(super) http_get: Option<&'a HTTPGetAction>,
    pub(super) tcp_socket: Option<&'a TCPSocketAction>,
    pub(super) grpc: Option<&'a GRPCAction>,
    pub(super) sleep: Option<&'a SleepAction>,
}

impl Handler<'_> {
    /// Checks the first handler there is; any other is one too many.
    pub(super) fn check(&self, at: &Path, around: &PodValidationContext<'_>, errors: &mut Errors) {
        let all = [
            ("exec", self.exec.is_some()),
            ("httpGet", self.http_get.is_some()),
            ("tcpSocket", self.tcp_socket.is_some()),
            ("grpc", self.grpc.is_some()),
            ("sleep", self.sleep.is_some()),
        ];
        let mut set = all.into_iter().filter(|(_, set)| *set).map(|(name, _)| name);
        match set.next() {
            Some(first) => self.check_action(first, &at.child(first), around, errors),
            None => errors.required(at, "say what to do: exec, httpGet and so on"),
        }
        for other in set {
            errors.forbidden(&at.child(other), "there may be one handler only");
        }
    }

    fn check_action(
        &self,
        name: &str,
        at: &Path,
        around: &PodValidationContext<'_>,
        errors: &mut Errors,
    ) {
        match (name, self.exec, self.http_get, self.tcp_socket) {
            ("exec", Some(exec), ..) => {
                if exec.command.as_ref().is_none_or(Vec::is_empty) {
                    errors.required(&at.child("command"), "");
                }
            }
            ("httpGet", _, Some(http_get), _) => check_http_get(at, http_get, errors),
            ("tcpSocket", .., Some(tcp_socket)) => {
                ports::check_number_or_name(&at.child("port"), &tcp_socket.port, errors);
            }
            _ => self.check_rare_action(at, around, errors),
        }
    }

    fn check_rare_action(&self, at: &Path, around: &PodValidationContext<'_>, errors: &mut Errors) {
        if let Some(grpc) = self.grpc {
            ports::check_number(&at.child("port"), grpc.port, errors);
        }
        let grace = around.spec.termination_grace_period_seconds;
        if let (Some(sleep), Some(grace)) = (self.sleep, grace)
            && !(0..=grace).contains(&sleep.seconds)
        {
            let detail = format!("must be from 0 to terminationGracePeriodSeconds ({grace})");
            errors.invalid(at, sleep.seconds, detail);
        }
    }
}

fn check_http_get(at: &Path, action: &HTTPGetAction, errors: &mut Errors) {
    errors.check_present(&at.child("path"), action.path.as_deref().unwrap_or_default());
    ports::check_number_or_name(&at.child("port"), &action.port, errors);
    let scheme = action.scheme.as_deref().unwrap_or_default();
    errors.check_supported(&at.child("scheme"), scheme, &SCHEMES);
    for header in action.http_headers.iter().flatten() {
        let complaints = names::header_name(&header.name);
        errors.invalid_for(&at.child("httpHeaders"), &header.name, complaints);
    }
}
