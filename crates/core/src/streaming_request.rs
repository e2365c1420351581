//! Requests for exec, attach and port-forward: what is asked for.

use k8s_openapi::api::core::v1::Pod;

use crate::pod::PodExt;

#[cfg(test)]
mod tests;

/// Ports of one request; a client that needs more connects again.
const MAX_PORTS: usize = 127;

/// What is asked of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteCommandOptions {
    /// The command with its arguments; none for attach.
    pub command: Vec<String>,
    /// Whether the client sends input.
    pub stdin: bool,
    /// Whether the client gets the output.
    pub stdout: bool,
    /// Whether the client gets the error output apart.
    pub stderr: bool,
    /// Whether the command has a terminal.
    pub tty: bool,
}

impl RemoteCommandOptions {
    /// Reads them from the names and values of a query. A flag is on when its first value is exactly `1`.
    ///
    /// # Errors
    /// When no stream is asked for.
    pub fn read(query: &[(String, String)]) -> Result<Self, String> {
        let is_on = |flag: &str| {
            let first = query.iter().find(|(name, _)| name == flag);
            first.is_some_and(|(_, value)| value == "1")
        };
        let command = query.iter().filter(|(name, _)| name == "command");
        let options = Self {
            command: command.map(|(_, value)| value.clone()).collect(),
            stdin: is_on("input"),
            stdout: is_on("output"),
            stderr: is_on("error"),
            tty: is_on("tty"),
        };
        options.checked()
    }

    /// The options of attach: whether there is a terminal was decided when the container was made.
    ///
    /// # Errors
    /// When no stream is asked for.
    pub fn of_attach(self, tty: bool) -> Result<Self, String> {
        Self { tty, ..self }.checked()
    }

    /// A terminal has one output.
    fn checked(mut self) -> Result<Self, String> {
        self.stderr &= !self.tty;
        if !(self.stdin || self.stdout || self.stderr) {
            return Err("you must specify at least 1 of stdin, stdout, stderr".to_owned());
        }
        Ok(self)
    }
}

/// Whether a container of the pod's spec has a terminal.
pub fn has_terminal(pod: &Pod, container: &str) -> bool {
    pod.container(container).is_some_and(|found| found.spec.tty == Some(true))
}

/// The ports that a client of port-forward over WebSocket channels names in its query.
///
/// # Errors
/// When there is none, too many, or one that is no port.
pub fn read_ports(query: &[(String, String)]) -> Result<Vec<u16>, String> {
    let values: Vec<&str> =
        query.iter().filter(|(name, _)| name == "port").map(|(_, value)| value.as_str()).collect();
    if values.is_empty() {
        return Err("query parameter \"port\" is required".to_owned());
    }
    let ports: Result<Vec<u16>, String> =
        values.iter().flat_map(|value| value.split(',')).map(port).collect();
    ports.and_then(|ports| match ports.len() {
        ..=MAX_PORTS => Ok(ports),
        many => Err(format!("{many} ports are too many: at most {MAX_PORTS} can be asked for")),
    })
}

fn port(text: &str) -> Result<u16, String> {
    if text.is_empty() {
        return Err("query parameter \"port\" cannot be empty".to_owned());
    }
    match text.parse() {
        Ok(0) => Err(format!("port {text:?} must be > 0")),
        // A sign is no part of a port.
        Ok(port) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(port),
        _ => Err(format!("unable to parse {text:?} as a port")),
    }
}
