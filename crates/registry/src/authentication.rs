//! As whom a registry is asked, and the tokens that its token server gives for that.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, StatusCode};
use serde::Deserialize;

use crate::challenge::TokenServer;
use crate::error::RegistryError;
use crate::transport::{RegistryRequest, Transport};

/// The name that token servers know us by.
const CLIENT_ID: &str = "oarsman";
/// Tokens are some kilobytes.
const MAX_ANSWER: usize = 1 << 20;

/// As whom a registry is asked.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum PullCredentials {
    /// As anyone.
    #[default]
    Anonymous,
    /// By name and password.
    Password {
        /// The name.
        username: String,
        /// The password.
        password: String,
    },
    /// By a token that the token server exchanges for one of the registry.
    IdentityToken(String),
    /// By a token that is sent as it is.
    RegistryToken(String),
}

impl std::fmt::Debug for PullCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.shown())
    }
}

impl PullCredentials {
    /// What errors say in place of the secret.
    pub(crate) fn shown(&self) -> &'static str {
        match self {
            Self::Anonymous => "a request without credentials",
            Self::Password { .. } => "the user name and password",
            Self::IdentityToken(_) => "the identity token",
            Self::RegistryToken(_) => "the registry token",
        }
    }

    /// Sent at once, before the registry has asked for it.
    pub(crate) fn first_header(&self) -> Option<HeaderValue> {
        match self {
            Self::RegistryToken(token) => bearer(token),
            _ => None,
        }
    }

    /// The header of a registry that takes name and password itself.
    pub(crate) fn basic_header(&self) -> Option<HeaderValue> {
        let Self::Password { username, password } = self else { return None };
        let text = format!("Basic {}", STANDARD.encode(format!("{username}:{password}")));
        secret(&text)
    }
}

fn bearer(token: &str) -> Option<HeaderValue> {
    secret(&format!("Bearer {token}"))
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
}

/// Asks a token server for a token that reads the repository, and gives the header with it.
pub(crate) async fn fetch_token(
    transport: &Transport,
    server: &TokenServer,
    credentials: &PullCredentials,
    repository: &str,
) -> Result<HeaderValue, RegistryError> {
    let request = token_request(server, credentials, repository)?;
    let url = request.shown_url();
    let response = transport.send_to_token_server(request).await?;
    let (status, body) = (response.status(), response.read(MAX_ANSWER).await?);
    let malformed = |why: &str| RegistryError::Malformed { url: url.clone(), why: why.to_owned() };
    match status {
        status if status.is_success() => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
            let (who, why) = (credentials.shown(), super::transport::said(&body));
            return Err(RegistryError::Unauthorized { url, who, why });
        }
        status => {
            let why = super::transport::said(&body);
            return Err(RegistryError::Status { url, status: status.as_u16(), why });
        }
    }
    token_header(&body).map_err(malformed)
}

/// The header with the token that a token server has answered.
pub(crate) fn token_header(body: &[u8]) -> Result<HeaderValue, &'static str> {
    let answer: TokenAnswer = serde_json::from_slice(body).map_err(|_| "it is no token")?;
    let token = if answer.token.is_empty() { answer.access_token } else { answer.token };
    if token.is_empty() {
        return Err("it has neither token nor access_token");
    }
    bearer(&token).ok_or("its token cannot be sent in a header")
}

pub(crate) fn token_request(
    server: &TokenServer,
    credentials: &PullCredentials,
    repository: &str,
) -> Result<RegistryRequest, RegistryError> {
    // A server that names no scope, or one of another repository, is asked for what is needed.
    let wanted = format!("repository:{repository}:pull");
    let scope = if server.scope.contains(repository) { &server.scope } else { &wanted };
    let mut fields = vec![("service", server.service.as_str()), ("scope", scope.as_str())];
    if let PullCredentials::IdentityToken(token) = credentials {
        let grant = [("grant_type", "refresh_token"), ("client_id", CLIENT_ID)];
        fields.extend(grant);
        fields.push(("refresh_token", token));
        let mut request = RegistryRequest::new(Method::POST, &server.realm)?;
        request.body = form(&fields);
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers.insert(CONTENT_TYPE, kind);
        return Ok(request);
    }
    fields.retain(|(_, value)| !value.is_empty());
    let separator = if server.realm.contains('?') { '&' } else { '?' };
    let url = format!("{}{separator}{}", server.realm, form(&fields));
    let mut request = RegistryRequest::new(Method::GET, &url)?;
    request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(header) = credentials.basic_header() {
        request.headers.insert(AUTHORIZATION, header);
    }
    Ok(request)
}

/// Fields as in the query of a URL.
fn form(fields: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", escaped(value));
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(scope: &str) -> TokenServer {
        TokenServer {
            realm: "https://auth.example/token".to_owned(),
            service: "a service".to_owned(),
            scope: scope.to_owned(),
        }
    }

    #[test]
    fn a_token_is_asked_for_with_the_scope_that_is_needed() {
        let rows = [
            ("repository:a/b:pull,push", "repository%3Aa%2Fb%3Apull%2Cpush"),
            ("repository:other:pull", "repository%3Aa%2Fb%3Apull"),
            ("", "repository%3Aa%2Fb%3Apull"),
        ];
        for (scope, wanted) in rows {
            let request =
                token_request(&server(scope), &PullCredentials::Anonymous, "a/b").unwrap();
            let query = format!("service=a%20service&scope={wanted}");
            assert_eq!(request.url.query(), Some(query.as_str()));
            assert!(!request.headers.contains_key(AUTHORIZATION));
        }
    }

    #[test]
    fn an_identity_token_is_posted_and_a_password_is_in_the_header() {
        let token = PullCredentials::IdentityToken("s+cret".to_owned());
        let request = token_request(&server(""), &token, "a").unwrap();
        assert_eq!(request.method, Method::POST);
        assert!(request.body.contains("grant_type=refresh_token"), "{}", request.body);
        assert!(request.body.ends_with("refresh_token=s%2Bcret"), "{}", request.body);
        let password = PullCredentials::Password {
            username: "aladdin".to_owned(),
            password: "opensesame".to_owned(),
        };
        let request = token_request(&server(""), &password, "a").unwrap();
        assert_eq!(request.headers[AUTHORIZATION], "Basic YWxhZGRpbjpvcGVuc2VzYW1l");
        for secret in [&token, &password] {
            let shown = format!("{secret:?}");
            assert!(!shown.contains("s+cret") && !shown.contains("opensesame"), "{shown}");
        }
    }
}
