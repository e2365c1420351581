//! Connections of the commands to containers and ports, over the local socket.

use oarsman_core::ids::FullName;
use oarsman_streaming::command_client;
use oarsman_streaming::connect::{self, ConnectError, UpgradeRequest, UpgradedStream};
use tokio::net::UnixStream;

use super::client::{ClientError, LocalClient};
use super::{ErrorBody, VERSION};

/// The subprotocol of port-forward over SPDY.
const PORT_FORWARD_PROTOCOL: &str = "portforward.k8s.io";

/// What is asked of a container.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandRequest {
    /// The command with its arguments; none to attach.
    pub(crate) command: Vec<String>,
    pub(crate) stdin: bool,
    pub(crate) tty: bool,
}

impl LocalClient {
    /// Runs a command in a container of a pod, or attaches to the container's own, and returns the connection to it.
    pub(crate) async fn command(
        &self,
        pod: &FullName,
        container: &str,
        request: &CommandRequest,
    ) -> Result<UpgradedStream, ClientError> {
        let endpoint = if request.command.is_empty() { "attach" } else { "exec" };
        let parts = [&pod.namespace, &pod.name, container].map(percent_encode).join("/");
        let query = query(request);
        let target = format!("{VERSION}/{endpoint}/{parts}?{query}");
        self.upgrade(command_client::request(target)).await
    }

    /// Connects to the ports of a pod by SPDY.
    pub(crate) async fn port_forward(&self, pod: &FullName) -> Result<UpgradedStream, ClientError> {
        let parts = [&pod.namespace, &pod.name].map(|part| percent_encode(part)).join("/");
        let target = format!("{VERSION}/portForward/{parts}");
        self.upgrade(connect::spdy_request(target, &[PORT_FORWARD_PROTOCOL])).await
    }

    async fn upgrade(&self, request: UpgradeRequest) -> Result<UpgradedStream, ClientError> {
        let socket = self.socket()?;
        let stream =
            UnixStream::connect(socket.path()).await.map_err(|error| self.connect_error(&error))?;
        let upgraded = connect::upgrade(stream, "localhost", request).await;
        upgraded.map_err(|error| match error {
            ConnectError::Refused { status, message, .. } => self.refusal(status, message),
            other => self.other(&other),
        })
    }

    /// Why the agent, or the runtime behind it, refused. Only refusals of the agent itself are JSON: a runtime that forbids something has nothing against the user.
    fn refusal(&self, status: u16, message: String) -> ClientError {
        match serde_json::from_str(&message) {
            Ok(ErrorBody { .. }) if status == 403 => self.forbidden(),
            Ok(ErrorBody { error }) => ClientError::Refused(error),
            Err(_) => ClientError::Refused(message),
        }
    }
}

fn query(request: &CommandRequest) -> String {
    let flags =
        [("input", request.stdin), ("output", true), ("error", !request.tty), ("tty", request.tty)];
    let flags = flags.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| format!("{name}=1"));
    let words = request.command.iter().map(|word| format!("command={}", percent_encode(word)));
    flags.chain(words).collect::<Vec<_>>().join("&")
}

/// Escapes all bytes but letters, digits and a few marks.
fn percent_encode(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runtime_forbids_is_not_taken_for_a_lack_of_rights_of_the_user() {
        let client = LocalClient::new("/root-dir".as_ref());
        let rows = [
            (
                403,
                r#"{"error":"only root may ask"}"#,
                "the agent in /root-dir answers root only: run this as root",
            ),
            (403, "cannot enter the container", "cannot enter the container"),
            (404, r#"{"error":"there is nothing here"}"#, "there is nothing here"),
            (404, "pod does not exist", "pod does not exist"),
        ];
        for (status, message, expected) in rows {
            assert_eq!(client.refusal(status, message.to_owned()).to_string(), expected);
        }
    }

    #[test]
    fn words_of_a_command_arrive_as_they_were_typed() {
        let command = ["sh", "-c", "echo a+b=c & d%ü"].map(str::to_owned).to_vec();
        let request = CommandRequest { command: command.clone(), stdin: true, tty: false };
        let read = oarsman_server::query::read(&query(&request));
        let words: Vec<_> = read.iter().filter(|(name, _)| name == "command").collect();
        assert_eq!(words.iter().map(|(_, word)| word.clone()).collect::<Vec<_>>(), command);
        let flags: Vec<_> = read.iter().take(3).map(|(name, _)| name.as_str()).collect();
        assert_eq!(flags, ["input", "output", "error"]);
        let request = CommandRequest { tty: true, ..request };
        assert!(query(&request).starts_with("input=1&output=1&tty=1&command=sh"));
    }
}
