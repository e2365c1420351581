//! Where a redirect leads, and whether it may be followed.

use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::{HeaderMap, Uri, header::LOCATION};

/// The target of a redirect, relative to the URL that was asked for.
pub(crate) fn target(base: &Uri, headers: &HeaderMap) -> Result<Uri, String> {
    let location = headers.get(LOCATION).ok_or("it names no location")?;
    let location = location.to_str().map_err(|_| "its location is no text")?;
    let parsed = |text: &str| -> Result<Uri, String> {
        text.parse().map_err(|error| format!("its location is no URL: {error}"))
    };
    if location.contains("://") {
        return parsed(location);
    }
    let scheme = base.scheme_str().unwrap_or("https");
    if let Some(rest) = location.strip_prefix("//") {
        return parsed(&format!("{scheme}://{rest}"));
    }
    let authority = base.authority().map_or("", |it| it.as_str());
    if location.starts_with('/') {
        return parsed(&format!("{scheme}://{authority}{location}"));
    }
    let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
    parsed(&format!("{scheme}://{authority}{directory}/{location}"))
}

/// Why a redirect from one URL to another is not followed, if it is not.
pub(crate) fn refusal(from: &Uri, to: &Uri) -> Option<String> {
    let is_known = to.scheme() == Some(&Scheme::HTTP) || to.scheme() == Some(&Scheme::HTTPS);
    if !is_known || to.host().is_none_or(str::is_empty) {
        return Some("only http and https are followed".to_owned());
    }
    if from.scheme() == Some(&Scheme::HTTPS) && to.scheme() != Some(&Scheme::HTTPS) {
        return Some("it leads away from TLS".to_owned());
    }
    to.authority().filter(|it| it.as_str().contains('@')).map(|_| "it holds credentials".to_owned())
}

/// Whether both are the same server, which may see the same secrets.
pub(crate) fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| {
        let usual = if uri.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
        uri.port_u16().unwrap_or(usual)
    };
    one.scheme() == other.scheme() && one.host() == other.host() && port(one) == port(other)
}

/// A URL as logs and errors show it: without its query, which may be a signature.
pub(crate) fn shown(url: &Uri) -> String {
    let path = url.path_and_query().map_or("", PathAndQuery::path);
    let host = url.authority().map_or("", |it| it.as_str());
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{}://{host}{path}", url.scheme_str().unwrap_or("https"))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn a_location_may_be_whole_or_relative() {
        let base = uri("https://r:5000/v2/a/blobs/1?x=y");
        let rows = [
            ("https://cdn/b?sig=1", "https://cdn/b?sig=1"),
            ("//cdn/b", "https://cdn/b"),
            ("/b", "https://r:5000/b"),
            ("2", "https://r:5000/v2/a/blobs/2"),
        ];
        for (location, wanted) in rows {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_str(location).unwrap());
            assert_eq!(target(&base, &headers), Ok(uri(wanted)), "{location}");
        }
        assert!(target(&base, &HeaderMap::new()).is_err());
    }

    #[test]
    fn redirects_that_weaken_are_not_followed() {
        let rows = [
            ("https://r/", "https://cdn/", true),
            ("http://r/", "https://cdn/", true),
            ("http://r/", "http://cdn/", true),
            ("https://r/", "http://r/", false),
            ("https://r/", "file://r/etc/passwd", false),
            ("https://r/", "https://user:secret@r/", false),
        ];
        for (from, to, is_followed) in rows {
            assert_eq!(refusal(&uri(from), &uri(to)).is_none(), is_followed, "{from} {to}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let rows = [
            ("https://r/a", "https://r:443/b", true),
            ("https://r/", "https://r:444/", false),
            ("http://r/", "https://r/", false),
            ("https://r/", "https://s/", false),
        ];
        for (one, other, wanted) in rows {
            assert_eq!(is_same_origin(&uri(one), &uri(other)), wanted, "{one} {other}");
        }
        assert_eq!(shown(&uri("https://u:p@cdn/b?sig=secret")), "https://cdn/b");
    }
}
