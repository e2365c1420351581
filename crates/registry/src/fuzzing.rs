//! Parsers of what registries answer and administrators write, for fuzzing: whatever the bytes are, there is an answer.

use std::path::Path;

use hyper::header::{
    CONTENT_RANGE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
};
use hyper::{Method, Uri};

use crate::authentication::{PullCredentials, token_header, token_request};
use crate::challenge::{Challenge, challenge};
use crate::host_session::range_begin;
use crate::hosts::{RegistryHost, of_entry};
use crate::transport::{RegistryRequest, said};
use crate::{hosts_file, redirect};

/// No line that we repeat is longer, in bytes.
const MAX_SAID: usize = 4 * 300;

/// Takes bytes for each header that is looked at, and for each body.
#[doc(hidden)]
pub fn fuzz_answers(bytes: &[u8]) {
    let text = said(bytes);
    assert!(!text.is_empty() && text.len() <= MAX_SAID, "{text:?}");
    assert!(!text.contains(char::is_control), "{text:?}");
    if let Ok(header) = token_header(bytes) {
        assert!(header.is_sensitive(), "a token that is shown");
    }
    let header = |name: HeaderName| {
        let value = HeaderValue::from_bytes(bytes).ok()?;
        Some(HeaderMap::from_iter([(name, value)]))
    };
    if let Some(headers) = header(WWW_AUTHENTICATE) {
        fuzz_challenge(&headers);
    }
    if let Some(headers) = header(CONTENT_RANGE) {
        range_begin(&headers);
    }
    if let Some(headers) = header(LOCATION) {
        fuzz_redirect(&headers);
    }
}

fn fuzz_challenge(headers: &HeaderMap) {
    let Some(Challenge::Bearer(server)) = challenge(headers) else { return };
    assert!(!server.realm.is_empty());
    let password =
        PullCredentials::Password { username: "u".to_owned(), password: "secret".to_owned() };
    for credentials in [PullCredentials::IdentityToken("secret".to_owned()), password] {
        let Ok(request) = token_request(&server, &credentials, "a/b") else { continue };
        let shown = request.shown_url();
        assert!(!shown.contains("secret"), "{shown}");
    }
}

/// A redirect that is followed leads to a server by HTTP, never away from TLS, and with none of our credentials elsewhere.
fn fuzz_redirect(headers: &HeaderMap) {
    let bases = ["https://r.example:5000/v2/a/blobs/b?c=d", "http://127.0.0.1:5000/v2/a"];
    for base in bases.map(Uri::from_static) {
        let Ok(to) = redirect::target(&base, headers) else { continue };
        if redirect::refusal(&base, &to).is_some() {
            continue;
        }
        assert!(to.host().is_some_and(|host| !host.is_empty()), "{to}");
        assert!(base.scheme_str() == Some("http") || to.scheme_str() == Some("https"), "{to}");
        assert_eq!(redirect::is_same_origin(&base, &to), redirect::is_same_origin(&to, &base));
        assert!(RegistryRequest::new(Method::GET, &to.to_string()).is_ok(), "{to}");
        redirect::shown(&to);
    }
}

/// Takes bytes for a `hosts.toml`.
#[doc(hidden)]
pub fn fuzz_hosts_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // It is a host, too.
    check_host(RegistryHost::of_url(text));
    let Ok(file) = hosts_file::parse(text) else { return };
    for entry in file.hosts.iter().chain(&file.server) {
        assert!(entry.headers.len() <= text.len(), "more headers than characters");
        check_host(of_entry(entry, Path::new("/")));
    }
}

fn check_host(host: Result<RegistryHost, String>) {
    let Ok(host) = host else { return };
    let url = host.url("library/busybox", "manifests/latest");
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    assert!(matches!(scheme, "http" | "https"), "{url}");
    let authority = rest.split('/').next().unwrap_or_default();
    assert!(!authority.is_empty() && !authority.contains('@'), "{url}");
}
