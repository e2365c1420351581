//! What an HTTP hook or probe asks for, made from its spec: the port found, the headers filled in. Such a request is answered by the
//! container it belongs to, so nothing about it is secret to that container, and nothing of ours is added to it.

use k8s_openapi::api::core::v1::HTTPGetAction;

use crate::handler::{ContainerEndpoint, HandlerTarget, TargetError};

/// Who hooks say they are: tools know the Go kubelet's word and the version it belongs to.
pub const USER_AGENT: &str = "kube-lifecycle/1.36";

/// The HTTP GET of a hook, with all fields of its action resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// With TLS; the server's certificate is not verified.
    pub tls: bool,
    /// The host name or IP address to connect to.
    pub host: String,
    /// The number, after names of ports are resolved.
    pub port: u16,
    /// From the slash on.
    pub path_and_query: String,
    /// In this order, at most one `Host` among them.
    pub headers: Vec<(String, String)>,
}

impl HttpRequest {
    /// What the hook of this container asks for.
    ///
    /// # Errors
    /// When port, scheme or host are missing or cannot be.
    pub fn of(action: &HTTPGetAction, container: &ContainerEndpoint) -> Result<Self, TargetError> {
        Self::by(USER_AGENT, action, container)
    }

    /// The same of a caller with this user agent.
    ///
    /// # Errors
    /// When port, scheme or host are missing or cannot be.
    pub fn by(
        user_agent: &str,
        action: &HTTPGetAction,
        container: &ContainerEndpoint,
    ) -> Result<Self, TargetError> {
        let HandlerTarget { tls, host, port } = container.http(action)?;
        let headers = action.http_headers.iter().flatten();
        let headers = headers.map(|header| (header.name.clone(), header.value.clone()));
        Ok(Self {
            tls,
            host,
            port,
            path_and_query: path_and_query(action.path.as_deref().unwrap_or_default()),
            headers: filled_in(headers.collect(), user_agent),
        })
    }

    /// The same to a server that turned out to speak HTTP only. What identifies the caller is not for every wire.
    #[must_use]
    pub fn in_plain(mut self) -> Self {
        self.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("Authorization"));
        Self { tls: false, ..self }
    }
}

/// What may stand in a request line: begun with a slash, without a fragment, and what no URL may hold in percents.
pub(crate) fn path_and_query(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut encoded = slash.to_owned();
    for byte in path.bytes() {
        match byte {
            b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                encoded.push_str(&format!("%{byte:02X}"));
            }
            byte if byte.is_ascii_graphic() => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Who asks, and that any answer will do, unless the hook says otherwise. An empty `Accept` says that there is to be none.
fn filled_in(mut headers: Vec<(String, String)>, user_agent: &str) -> Vec<(String, String)> {
    let mut hosts = 0;
    headers.retain(|(name, value)| {
        let is_host = name.eq_ignore_ascii_case("Host");
        hosts += usize::from(is_host);
        !is_host || (hosts == 1 && !value.is_empty())
    });
    for (name, value) in [("User-Agent", user_agent), ("Accept", "*/*")] {
        if !headers.iter().any(|(there, _)| there.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
    headers.retain(|(name, value)| !(name.eq_ignore_ascii_case("Accept") && value.is_empty()));
    headers
}

#[cfg(test)]
mod tests;
