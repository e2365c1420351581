//! Proxies, by the variables that other programs heed.

use std::env;

use hyper_util::client::proxy::matcher::Matcher;

/// Which proxies are used for which hosts, in the form of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`; empty for none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// For registries without TLS.
    pub http: String,
    /// For registries with TLS.
    pub https: String,
    /// Hosts that are reached directly.
    pub no: String,
}

impl ProxySettings {
    /// Those of the environment, in upper or lower case.
    pub fn of_environment() -> Self {
        let read = |name: &str| {
            let value = env::var(name).or_else(|_| env::var(name.to_lowercase()));
            value.unwrap_or_default()
        };
        Self { http: read("HTTP_PROXY"), https: read("HTTPS_PROXY"), no: read("NO_PROXY") }
    }

    pub(crate) fn matcher(&self) -> Matcher {
        let builder = Matcher::builder().http(self.http.as_str()).https(self.https.as_str());
        builder.no(self.no.as_str()).build()
    }
}

/// The addresses of proxies may hold passwords.
impl std::fmt::Debug for ProxySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_set = |value: &str| if value.is_empty() { "none" } else { "set" };
        f.debug_struct("ProxySettings")
            .field("http", &is_set(&self.http))
            .field("https", &is_set(&self.https))
            .field("no", &self.no)
            .finish()
    }
}
