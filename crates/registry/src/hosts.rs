//! Where the images of a registry may be had: its mirrors, and the registry itself.

use std::fs;
use std::path::{Path, PathBuf};

use hyper::http::uri::{Authority, Scheme};
use oarsman_net::TlsOptions;

use crate::error::RegistryError;
use crate::hosts_file::{self, HostEntry};

/// The registry that short names mean, and its real address.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");
const HOSTS_FILE: &str = "hosts.toml";
const API: &str = "/v2";

/// A server that may have the images of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegistryHost {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
    /// What precedes the repository's name, such as `/v2`.
    pub(crate) path: String,
    pub(crate) abilities: HostAbilities,
    pub(crate) tls: TlsOptions,
    /// Sent with every request to this host.
    pub(crate) headers: Vec<(String, String)>,
    /// The registry it stands for, where it is another one.
    pub(crate) mirror_of: Option<String>,
}

/// What a host is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostAbilities {
    /// Content by its digest.
    pub(crate) pull: bool,
    /// Digests of tags.
    pub(crate) resolve: bool,
}

impl RegistryHost {
    /// The host of a URL such as `https://mirror:5000/path`; one without a scheme has that of a registry of this name.
    pub(crate) fn of_url(url: &str) -> Result<Self, String> {
        let (scheme, rest) = match url.split_once("://") {
            Some(("http", rest)) => (Some(Scheme::HTTP), rest),
            Some(("https", rest)) => (Some(Scheme::HTTPS), rest),
            Some((other, _)) => return Err(format!("{url:?} has the scheme {other:?}: use https")),
            None => (None, url),
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let wrong = |error| format!("{url:?} has no valid host: {error}");
        let authority: Authority = host.parse().map_err(wrong)?;
        if authority.as_str().contains('@') {
            return Err(format!("the URL of host {:?} may not hold credentials", authority.host()));
        }
        let path = match path.trim_end_matches('/') {
            "" => API.to_owned(),
            path if path == "v2" || path.ends_with("/v2") => format!("/{path}"),
            path => format!("/{path}{API}"),
        };
        Ok(Self {
            scheme: scheme.unwrap_or_else(|| scheme_of(&authority)),
            authority,
            path,
            abilities: HostAbilities { pull: true, resolve: true },
            tls: TlsOptions::default(),
            headers: Vec::new(),
            mirror_of: None,
        })
    }

    /// The URL of a part of a repository, such as `manifests/latest`.
    pub(crate) fn url(&self, repository: &str, part: &str) -> String {
        let Self { scheme, authority, path, .. } = self;
        let namespace = self.mirror_of.as_ref().map(|of| format!("?ns={of}")).unwrap_or_default();
        format!("{scheme}://{authority}{path}/{repository}/{part}{namespace}")
    }
}

/// TLS, but for this machine itself, as with Docker and containerd.
fn scheme_of(authority: &Authority) -> Scheme {
    let host = authority.host().trim_matches(['[', ']']);
    let is_loopback =
        host == "localhost" || host.parse().is_ok_and(|it: std::net::IpAddr| it.is_loopback());
    match is_loopback && authority.port_u16() != Some(443) {
        true => Scheme::HTTP,
        false => Scheme::HTTPS,
    }
}

/// The hosts of a registry in the order in which they are asked; the registry itself is the last. Blocks.
pub(crate) fn hosts_of(
    registry: &str,
    directories: &[PathBuf],
) -> Result<Vec<RegistryHost>, RegistryError> {
    match directories.iter().find_map(|directory| directory_of(directory, registry)) {
        None => Ok(vec![registry_itself(registry, registry)?]),
        Some(directory) if directory.join(HOSTS_FILE).exists() => {
            configured(registry, &directory.join(HOSTS_FILE))
        }
        Some(directory) => {
            let mut host = registry_itself(registry, registry)?;
            host.tls = certificates_in(&directory)?;
            if host.tls != TlsOptions::default() {
                host.scheme = Scheme::HTTPS;
            }
            Ok(vec![host])
        }
    }
}

/// The directory of a registry: `host:port`, `host_port_` where names may have no colon, or `_default`.
fn directory_of(directory: &Path, registry: &str) -> Option<PathBuf> {
    let plain = registry.split_once(':').map(|(host, port)| format!("{host}_{port}_"));
    let names = [Some(registry.to_owned()), plain, Some("_default".to_owned())];
    let paths = names.into_iter().flatten().map(|name| directory.join(name));
    // A name with a slash or dots is none of a registry.
    paths.filter(|path| path.parent() == Some(directory)).find(|path| path.is_dir())
}

fn registry_itself(registry: &str, server: &str) -> Result<RegistryHost, RegistryError> {
    let server = if server == DOCKER_HUB.0 { DOCKER_HUB.1 } else { server };
    RegistryHost::of_url(server)
        .map_err(|why| RegistryError::Malformed { url: registry.to_owned(), why })
}

fn configured(registry: &str, path: &Path) -> Result<Vec<RegistryHost>, RegistryError> {
    let wrong = |why: String| RegistryError::HostsFile { path: path.to_owned(), why };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let file = hosts_file::parse(&text).map_err(wrong)?;
    let base = path.parent().unwrap_or(path);
    let mut hosts = Vec::new();
    for entry in &file.hosts {
        let host = of_entry(entry, base).map_err(wrong)?;
        let real = if registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { registry };
        let is_mirror = host.authority.as_str() != real;
        hosts.push(RegistryHost { mirror_of: is_mirror.then(|| registry.to_owned()), ..host });
    }
    let server = match &file.server {
        Some(server) => of_entry(server, base).map_err(wrong)?,
        None => registry_itself(registry, registry)?,
    };
    // Who names the registry itself among the hosts has said how it is to be asked.
    if !hosts.iter().any(|host| host.authority == server.authority) {
        hosts.push(server);
    }
    Ok(hosts)
}

pub(crate) fn of_entry(entry: &HostEntry, base: &Path) -> Result<RegistryHost, String> {
    let mut host = RegistryHost::of_url(&entry.url)?;
    if entry.override_path {
        let path = entry.url.split_once("://").map_or(entry.url.as_str(), |(_, rest)| rest);
        let path = path.split_once('/').map_or("", |(_, path)| path).trim_end_matches('/');
        host.path = if path.is_empty() { String::new() } else { format!("/{path}") };
    }
    host.abilities = entry.abilities;
    host.headers.clone_from(&entry.headers);
    let absolute = |path: &PathBuf| base.join(path);
    host.tls = TlsOptions {
        authorities: entry.authorities.iter().map(absolute).collect(),
        client: entry.client.as_ref().map(|(cert, key)| (absolute(cert), absolute(key))),
        accepts_any: entry.skip_verify,
    };
    Ok(host)
}

/// Docker's layout: `*.crt` are authorities, `*.cert` with `*.key` is what we show.
fn certificates_in(directory: &Path) -> Result<TlsOptions, RegistryError> {
    let wrong = |why: String| RegistryError::HostsFile { path: directory.to_owned(), why };
    let mut options = TlsOptions::default();
    let entries = fs::read_dir(directory).map_err(|error| wrong(error.to_string()))?;
    for entry in entries {
        let path = entry.map_err(|error| wrong(error.to_string()))?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("crt") => options.authorities.push(path),
            Some("cert") => {
                let key = path.with_extension("key");
                if !key.exists() {
                    return Err(wrong(format!("{} has no key beside it", path.display())));
                }
                options.client = Some((path, key));
            }
            _ => {}
        }
    }
    options.authorities.sort();
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(host: &RegistryHost) -> String {
        host.url("a/b", "manifests/1")
    }

    #[test]
    fn a_registry_without_configuration_is_asked_with_tls_unless_it_is_this_machine() {
        let rows = [
            ("docker.io", "https://registry-1.docker.io/v2/a/b/manifests/1"),
            ("quay.io", "https://quay.io/v2/a/b/manifests/1"),
            ("registry:5000", "https://registry:5000/v2/a/b/manifests/1"),
            ("localhost:5000", "http://localhost:5000/v2/a/b/manifests/1"),
            ("127.0.0.1:5000", "http://127.0.0.1:5000/v2/a/b/manifests/1"),
            ("[::1]:5000", "http://[::1]:5000/v2/a/b/manifests/1"),
            ("localhost:443", "https://localhost:443/v2/a/b/manifests/1"),
            ("10.0.0.1:5000", "https://10.0.0.1:5000/v2/a/b/manifests/1"),
        ];
        for (registry, wanted) in rows {
            let hosts = hosts_of(registry, &[]).unwrap();
            assert_eq!(hosts.iter().map(shown).collect::<Vec<_>>(), [wanted]);
        }
    }

    #[test]
    fn mirrors_come_in_the_order_of_the_file_and_the_registry_last() {
        let directory = tempfile::tempdir().unwrap();
        let docker = directory.path().join("docker.io");
        fs::create_dir(&docker).unwrap();
        let text = r#"
            server = "https://registry-1.docker.io"
            [host."https://z.example"]
              capabilities = ["pull"]
              ca = "z.crt"
            [host."http://a.example:5000/cache"]
              skip_verify = true
            [host."https://b.example/own/path"]
              override_path = true
        "#;
        fs::write(docker.join(HOSTS_FILE), text).unwrap();
        let hosts = hosts_of("docker.io", &[directory.path().to_owned()]).unwrap();
        let wanted = [
            "https://z.example/v2/a/b/manifests/1?ns=docker.io",
            "http://a.example:5000/cache/v2/a/b/manifests/1?ns=docker.io",
            "https://b.example/own/path/a/b/manifests/1?ns=docker.io",
            "https://registry-1.docker.io/v2/a/b/manifests/1",
        ];
        assert_eq!(hosts.iter().map(shown).collect::<Vec<_>>(), wanted);
        assert_eq!(hosts[0].abilities, HostAbilities { pull: true, resolve: false });
        assert_eq!(hosts[0].tls.authorities, [docker.join("z.crt")]);
        assert!(hosts[1].tls.accepts_any && !hosts[0].tls.accepts_any);
    }

    #[test]
    fn docker_names_authorities_and_client_certificates_by_their_endings() {
        let directory = tempfile::tempdir().unwrap();
        let registry = directory.path().join("registry_5000_");
        fs::create_dir(&registry).unwrap();
        for name in ["ca.crt", "client.cert", "client.key"] {
            fs::write(registry.join(name), "").unwrap();
        }
        let hosts = hosts_of("registry:5000", &[directory.path().to_owned()]).unwrap();
        assert_eq!(hosts[0].tls.authorities, [registry.join("ca.crt")]);
        let client = Some((registry.join("client.cert"), registry.join("client.key")));
        assert_eq!(hosts[0].tls.client, client);
        fs::remove_file(registry.join("client.key")).unwrap();
        let wrong = hosts_of("registry:5000", &[directory.path().to_owned()]).unwrap_err();
        assert!(wrong.to_string().ends_with("client.cert has no key beside it"), "{wrong}");
    }

    #[test]
    fn a_url_that_is_none_is_refused() {
        for url in ["ftp://a", "https://", "https://user:secret@a", "https://a b"] {
            let wrong = RegistryHost::of_url(url).unwrap_err();
            assert!(!wrong.contains("secret"), "{wrong}");
        }
    }
}
