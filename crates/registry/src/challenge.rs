//! The header `WWW-Authenticate`: how a registry wants to be asked.

use hyper::header::{HeaderMap, WWW_AUTHENTICATE};

/// No registry has more in its header.
const MAX_PARAMETERS: usize = 32;

/// How a registry wants to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// With a user name and a password.
    Basic,
    /// With a token of that server.
    Bearer(TokenServer),
}

/// Where a token is to be had, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenServer {
    pub(crate) realm: String,
    pub(crate) service: String,
    pub(crate) scope: String,
}

/// The challenge that can be met best: a token, if there is one to be had.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let found: Vec<Challenge> = texts.filter_map(parse).collect();
    let bearer = found.iter().find(|it| matches!(it, Challenge::Bearer(_)));
    bearer.or(found.first()).cloned()
}

fn parse(text: &str) -> Option<Challenge> {
    let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut server = TokenServer::default();
    for (name, value) in parameters(rest) {
        match name.to_ascii_lowercase().as_str() {
            "realm" => server.realm = value,
            "service" => server.service = value,
            "scope" => server.scope = value,
            _ => {}
        }
    }
    (!server.realm.is_empty()).then_some(Challenge::Bearer(server))
}

/// `name="value"` or `name=value`, separated by commas; a comma may stand in quotes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let (mut found, mut rest) = (Vec::new(), text);
    while found.len() < MAX_PARAMETERS {
        let Some((name, after)) = rest.split_once('=') else { break };
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                after.split_once(',').map_or((after.trim().to_owned(), ""), |(value, after)| {
                    (value.trim().to_owned(), after)
                })
            }
        };
        found.push((name.trim().trim_start_matches(',').trim().to_owned(), value));
        rest = after.trim_start().trim_start_matches(',');
    }
    found
}

/// What stands before the closing quote, and what follows it.
fn unquote(text: &str) -> (String, &str) {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn of(texts: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for text in texts {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap());
        }
        challenge(&headers)
    }

    fn bearer(realm: &str, service: &str, scope: &str) -> Option<Challenge> {
        let (realm, service) = (realm.to_owned(), service.to_owned());
        Some(Challenge::Bearer(TokenServer { realm, service, scope: scope.to_owned() }))
    }

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let docker = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/busybox:pull,push""#;
        let rows: [(&[&str], Option<Challenge>); 9] = [
            (
                &[docker],
                bearer(
                    "https://auth.docker.io/token",
                    "registry.docker.io",
                    "repository:library/busybox:pull,push",
                ),
            ),
            (&["Basic realm=\"Registry\""], Some(Challenge::Basic)),
            (&["basic"], Some(Challenge::Basic)),
            (&["Basic realm=x", "Bearer realm=\"https://a/t\""], bearer("https://a/t", "", "")),
            (&["bearer realm=https://a/t, service=s"], bearer("https://a/t", "s", "")),
            (&["Bearer service=\"s\""], None),
            (&["Negotiate"], None),
            (&["Bearer realm=\"never closed"], bearer("never closed", "", "")),
            (&[], None),
        ];
        for (texts, wanted) in rows {
            assert_eq!(of(texts), wanted, "{texts:?}");
        }
    }

    #[test]
    fn a_header_of_many_parameters_is_cut() {
        let long = format!("Bearer {}", "a=b,".repeat(10_000));
        assert_eq!(of(&[&long]), None);
    }
}
