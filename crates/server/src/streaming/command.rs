//! `/exec` and `/attach`: a client talks to a process of a container.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, Request, State};
use oarsman_core::active_pods::ActivePod;
use oarsman_core::ids::FullName;
use oarsman_core::streaming_request::{RemoteCommandOptions, has_terminal};
use oarsman_cri::{CriError, StreamingEndpoint};
use oarsman_cri_types::v1::{AttachRequest, ExecRequest};
use oarsman_streaming::relay::RemoteCommandStreams;

use super::client_protocol::ClientProtocol;
use super::session::SessionTarget;
use super::{Answer, PathParts, StreamingRefusal, StreamingService, find};
use crate::pod_quota::QuotaPermit;
use crate::query;

pub(super) async fn exec(
    State(service): State<Arc<StreamingService>>,
    Path(path): Path<PathParts>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer {
    let admitted = AdmittedCommand::read(&service, &path, query.as_deref(), &request)?;
    let container_id = admitted.container_id(&service).await?;
    let RemoteCommandOptions { stdin, stdout, stderr, tty, .. } = admitted.options;
    let cmd = admitted.options.command.clone();
    let asked = ExecRequest { container_id, cmd, tty, stdin, stdout, stderr };
    let found = service.runtime.exec(asked).await;
    admitted.begin(&service, "exec", found, request).await
}

pub(super) async fn attach(
    State(service): State<Arc<StreamingService>>,
    Path(path): Path<PathParts>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Answer {
    let mut admitted = AdmittedCommand::read(&service, &path, query.as_deref(), &request)?;
    let has_terminal = has_terminal(&admitted.pod.pod, &admitted.container);
    let options = admitted.options.of_attach(has_terminal);
    admitted.options = options.map_err(StreamingRefusal::bad_request)?;
    let container_id = admitted.container_id(&service).await?;
    let RemoteCommandOptions { stdin, stdout, stderr, tty, .. } = admitted.options;
    let asked = AttachRequest { container_id, tty, stdin, stdout, stderr };
    let found = service.runtime.attach(asked).await;
    admitted.begin(&service, "attach", found, request).await
}

/// A request whose options and protocol are understood, and which has a place among the connections.
struct AdmittedCommand {
    name: FullName,
    pod: Arc<ActivePod>,
    container: String,
    options: RemoteCommandOptions,
    protocol: ClientProtocol,
    permit: QuotaPermit,
}

impl AdmittedCommand {
    fn read(
        service: &StreamingService,
        path: &PathParts,
        query: Option<&str>,
        request: &Request,
    ) -> Result<Self, StreamingRefusal> {
        let options = RemoteCommandOptions::read(&query::read(query.unwrap_or_default()))
            .map_err(StreamingRefusal::bad_request)?;
        let (name, pod) = service.pod(path)?;
        let (protocol, permit) = (ClientProtocol::of_command(request)?, service.permit(&name)?);
        let container = path.get("container").cloned().unwrap_or_default();
        Ok(Self { name, pod, container, options, protocol, permit })
    }

    async fn container_id(&self, service: &StreamingService) -> Result<String, StreamingRefusal> {
        find::container(service.runtime.as_ref(), &self.pod.pod, &self.container).await
    }

    /// Relays between the client and what the runtime has found.
    async fn begin(
        self,
        service: &StreamingService,
        endpoint: &'static str,
        found: Result<StreamingEndpoint, CriError>,
        request: Request,
    ) -> Answer {
        let Self { name, container, options, protocol, permit, .. } = self;
        let RemoteCommandOptions { stdin, stdout, stderr, tty, .. } = options;
        let relay = protocol.command_relay(RemoteCommandStreams { stdin, stdout, stderr, tty });
        let target = SessionTarget { endpoint, pod: name, container };
        service.session(target, protocol, permit).begin(found, relay, request).await
    }
}
