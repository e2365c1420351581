//! The header `Location` of a redirect, as a request.

use crate::hook::{HttpRequest, path_and_query};

/// Where a redirect leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Location {
    tls: bool,
    pub(super) host: String,
    port: u16,
    path_and_query: String,
    /// Whether it names a host: a `Host` of the probe was meant for another one then.
    names_host: bool,
}

impl Location {
    /// Reads it, in the light of the request it answers; none when it is no URL of HTTP.
    pub(super) fn parse(text: &str, asked: &HttpRequest) -> Option<Self> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), Some(rest)),
            _ => (None, text.strip_prefix("//")),
        };
        let tls = match scheme.map(str::to_ascii_lowercase).as_deref() {
            None => asked.tls,
            Some("http") => false,
            Some("https") => true,
            Some(_) => return None,
        };
        let Some(rest) = rest else { return Self::relative(text, asked) };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = host_and_port(authority, tls)?;
        Some(Self { tls, host, port, path_and_query: path_and_query(path), names_host: true })
    }

    /// On the server that was asked.
    fn relative(text: &str, asked: &HttpRequest) -> Option<Self> {
        let before_path = text.split(['/', '?', '#']).next().unwrap_or_default();
        if before_path.contains(':') {
            return None;
        }
        let current = asked.path_and_query.split('?').next().unwrap_or("/");
        let path = match text.chars().next() {
            None | Some('#') => asked.path_and_query.clone(),
            Some('/') => text.to_owned(),
            Some('?') => format!("{current}{text}"),
            Some(_) => {
                let directory = current.rsplit_once('/').map_or("", |(directory, _)| directory);
                format!("{directory}/{text}")
            }
        };
        let HttpRequest { tls, host, port, .. } = asked;
        let path_and_query = path_and_query(&without_dots(&path));
        Some(Self { tls: *tls, host: host.clone(), port: *port, path_and_query, names_host: false })
    }

    /// The request, with the headers of the one before.
    pub(super) fn request(self, asked: &HttpRequest) -> HttpRequest {
        let Self { tls, host, port, path_and_query, names_host } = self;
        let mut headers = asked.headers.clone();
        headers.retain(|(name, _)| !(names_host && name.eq_ignore_ascii_case("Host")));
        HttpRequest { tls, host, port, path_and_query, headers }
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Without the name and password that may stand before it.
fn host_and_port(authority: &str, tls: bool) -> Option<(String, u16)> {
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':').unwrap_or_default())
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let port = match port {
        "" if tls => 443,
        "" => 80,
        port => port.parse().ok()?,
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// The path without `.` and `..`.
fn without_dots(path: &str) -> String {
    let (path, query) = match path.find(['?', '#']) {
        Some(end) => path.split_at(end),
        None => (path, ""),
    };
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (index, part) in parts.iter().enumerate() {
        match *part {
            "." | ".." => {
                if *part == ".." {
                    kept.pop();
                }
                if index + 1 == parts.len() {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}{query}", kept.join("/"))
}
