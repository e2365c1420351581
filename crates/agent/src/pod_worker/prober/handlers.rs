//! Carries out one probe: a command in the container, an HTTP request, a TCP connection or a gRPC health check.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ExecAction, GRPCAction, HTTPGetAction, Probe, TCPSocketAction};
use oarsman_core::handler::{ContainerEndpoint, HandlerTarget};
use oarsman_core::hook::HttpRequest;
use oarsman_core::prober::http::{HttpAnswer, HttpProbe, HttpStep};
use oarsman_core::prober::network::{HealthAnswer, connected, judge_health, no_answer};
use oarsman_core::prober::{OUTPUT_LIMIT, ProbeOutcome, USER_AGENT, exec, http};
use oarsman_cri_types::v1::ExecSyncRequest;
use oarsman_net::{GrpcCheck, GrpcResponse, HttpGet, HttpResponse, Scheme, TcpConnect, Trust};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::ContainerProbe;
use super::slots::ProbeSlots;

/// How long after the deadline of a command the runtime may take to kill it and to answer. One that takes longer is in trouble itself,
/// which is no failure of the container.
const EXEC_ANSWER: Duration = Duration::from_secs(10);

/// What a probe does.
pub(super) struct Handler<'a> {
    probe: &'a ContainerProbe,
    action: Action<'a>,
    timeout: Duration,
}

enum Action<'a> {
    Exec(&'a ExecAction),
    Http(&'a HTTPGetAction),
    Tcp(&'a TCPSocketAction),
    Grpc(&'a GRPCAction),
    None,
}

impl<'a> Action<'a> {
    fn of(probe: &'a Probe) -> Self {
        let exec = probe.exec.as_ref().map(Self::Exec);
        let http = || probe.http_get.as_ref().map(Self::Http);
        let tcp = || probe.tcp_socket.as_ref().map(Self::Tcp);
        let grpc = || probe.grpc.as_ref().map(Self::Grpc);
        exec.or_else(http).or_else(tcp).or_else(grpc).unwrap_or(Self::None)
    }
}

impl<'a> Handler<'a> {
    pub(super) fn of(probe: &'a ContainerProbe) -> Self {
        let spec = probe.worker.kind().of(&probe.spec);
        let action = spec.map_or(Action::None, Action::of);
        Self { probe, action, timeout: probe.worker.schedule().timeout }
    }

    /// Waits until it may begin.
    pub(super) async fn slot<'s>(&self, slots: &'s ProbeSlots) -> Option<SemaphorePermit<'s>> {
        match self.action {
            Action::Exec(_) => slots.command().await,
            Action::Http(_) | Action::Tcp(_) | Action::Grpc(_) => slots.connection().await,
            Action::None => None,
        }
    }

    /// Carries it out, within its timeout.
    pub(super) async fn run(&self) -> ProbeOutcome {
        match self.action {
            Action::Exec(action) => self.exec(action).await,
            Action::Http(action) => self.http(action).await,
            Action::Tcp(action) => self.tcp(action).await,
            Action::Grpc(action) => self.grpc(action).await,
            Action::None => {
                let told = "the probe names no action; give it exec, httpGet, tcpSocket or grpc";
                ProbeOutcome::error(told)
            }
        }
    }

    async fn exec(&self, action: &ExecAction) -> ProbeOutcome {
        let command = exec::command(&self.probe.spec, action);
        let request = ExecSyncRequest {
            container_id: self.probe.id.to_string(),
            cmd: command.clone(),
            timeout: i64::try_from(self.timeout.as_secs()).unwrap_or(i64::MAX),
        };
        let runtime = &self.probe.context.node.seams.runtime;
        let limit = self.timeout.saturating_add(EXEC_ANSWER);
        match timeout(limit, runtime.exec_sync(request)).await {
            Ok(Ok(answer)) => exec::judge(answer.exit_code, &answer.stdout, &answer.stderr),
            Ok(Err(error)) if error.is_timeout() => exec::timed_out(&command, self.timeout),
            Ok(Err(error)) => ProbeOutcome::error(error.to_string()),
            Err(_) => ProbeOutcome::error(format!("the runtime did not answer within {limit:?}")),
        }
    }

    async fn http(&self, action: &HTTPGetAction) -> ProbeOutcome {
        let mut request = match http::request(action, &self.endpoint()) {
            Ok(request) => request,
            Err(error) => return ProbeOutcome::error(error.to_string()),
        };
        let (mut probe, began) = (HttpProbe::new(&request), self.probe.context.now());
        loop {
            let left = self.timeout.saturating_sub(self.probe.context.now().since(began));
            let network = &self.probe.context.node.seams.network;
            let answer = match network.get(&http_get(&request, left)).await {
                Ok(answer) => answer,
                Err(error) => return no_answer(&error.to_string()),
            };
            match probe.judge(&request, &http_answer(&answer)) {
                HttpStep::Follow(next) => request = next,
                HttpStep::Done(outcome) => return outcome,
            }
        }
    }

    async fn tcp(&self, action: &TCPSocketAction) -> ProbeOutcome {
        let HandlerTarget { host, port, .. } = match self.endpoint().tcp(action) {
            Ok(target) => target,
            Err(error) => return ProbeOutcome::error(error.to_string()),
        };
        let request = TcpConnect { host, port, timeout: self.timeout };
        match self.probe.context.node.seams.network.connect(&request).await {
            Ok(()) => connected(),
            Err(error) => no_answer(&error.to_string()),
        }
    }

    async fn grpc(&self, action: &GRPCAction) -> ProbeOutcome {
        let HandlerTarget { host, port, .. } = match self.endpoint().grpc(action) {
            Ok(target) => target,
            Err(error) => return ProbeOutcome::error(error.to_string()),
        };
        let request = GrpcCheck {
            host,
            port,
            service: action.service.clone().unwrap_or_default(),
            user_agent: USER_AGENT.to_owned(),
            timeout: self.timeout,
        };
        match self.probe.context.node.seams.network.check_health(&request).await {
            Ok(answer) => judge_health(&health_answer(answer)),
            Err(error) => no_answer(&error.to_string()),
        }
    }

    fn endpoint(&self) -> ContainerEndpoint {
        let ContainerProbe { context, pod, id, spec, .. } = self.probe;
        let host_ip = || context.node.host_ip();
        context
            .reader
            .with(|view, _| ContainerEndpoint::of(Some(pod), view, &spec.name, id, host_ip))
    }
}

/// Certificates are not checked: the author of the probe made the server too.
fn http_get(request: &HttpRequest, timeout: Duration) -> HttpGet {
    HttpGet {
        scheme: if request.tls { Scheme::Https } else { Scheme::Http },
        host: request.host.clone(),
        port: request.port,
        path_and_query: request.path_and_query.clone(),
        headers: request.headers.clone(),
        timeout,
        body_limit: OUTPUT_LIMIT,
        trust: Trust::AnyCertificate,
    }
}

fn http_answer(answer: &HttpResponse) -> HttpAnswer<'_> {
    let location = answer.headers.iter().find(|(name, _)| name == "location");
    HttpAnswer {
        status: answer.status,
        location: location.map(|(_, value)| value.as_str()),
        body: &answer.body,
    }
}

fn health_answer(answer: GrpcResponse) -> HealthAnswer {
    match answer {
        GrpcResponse::Status(status) => HealthAnswer::Status(status),
        GrpcResponse::Error { is_unimplemented, message } => {
            HealthAnswer::Refused { is_unimplemented, message }
        }
    }
}
