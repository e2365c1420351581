//! `hosts.toml`, the file by which containerd is told of a registry's mirrors, authorities and headers.

use std::path::PathBuf;

use serde::Deserialize;
use toml::{Table, Value};

use crate::hosts::HostAbilities;

/// The file's content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostsFile {
    /// The registry itself.
    pub(crate) server: Option<HostEntry>,
    /// In the order of the file.
    pub(crate) hosts: Vec<HostEntry>,
}

/// One host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostEntry {
    pub(crate) url: String,
    pub(crate) abilities: HostAbilities,
    pub(crate) authorities: Vec<PathBuf>,
    /// Certificate and key, which may be one file.
    pub(crate) client: Option<(PathBuf, PathBuf)>,
    pub(crate) skip_verify: bool,
    pub(crate) override_path: bool,
    pub(crate) headers: Vec<(String, String)>,
}

/// The fields of a host, which the top level has, too, for the server. Others, such as `dial_timeout`, have no effect.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    server: Option<String>,
    capabilities: Option<Vec<String>>,
    ca: OneOrMany,
    client: Option<ClientFiles>,
    skip_verify: bool,
    override_path: bool,
    header: toml::map::Map<String, Value>,
    host: Option<Table>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    #[default]
    None,
    One(PathBuf),
    Many(Vec<PathBuf>),
}

/// One file, several of which the first is taken, or pairs of certificate and key.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ClientFiles {
    One(PathBuf),
    Files(Vec<PathBuf>),
    Pairs(Vec<(PathBuf, PathBuf)>),
}

/// Reads the file.
pub(crate) fn parse(text: &str) -> Result<HostsFile, String> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut top: Fields = table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
    let hosts = top.host.take().unwrap_or_default();
    let hosts = hosts.into_iter().map(|(url, fields)| {
        let wrong = |error: toml::de::Error| format!("host {url:?}: {error}");
        entry(&url, fields.try_into().map_err(wrong)?)
    });
    let hosts = hosts.collect::<Result<Vec<_>, String>>()?;
    let server = top.server.take();
    let server = server.map(|url| entry(&url, top)).transpose()?;
    Ok(HostsFile { server, hosts })
}

fn entry(url: &str, fields: Fields) -> Result<HostEntry, String> {
    Ok(HostEntry {
        url: url.to_owned(),
        abilities: abilities(url, fields.capabilities.as_deref())?,
        authorities: match fields.ca {
            OneOrMany::None => Vec::new(),
            OneOrMany::One(path) => vec![path],
            OneOrMany::Many(paths) => paths,
        },
        client: fields.client.and_then(client_files),
        skip_verify: fields.skip_verify,
        override_path: fields.override_path,
        headers: headers(url, fields.header)?,
    })
}

fn abilities(url: &str, given: Option<&[String]>) -> Result<HostAbilities, String> {
    let Some(given) = given else { return Ok(HostAbilities { pull: true, resolve: true }) };
    let unknown = given.iter().find(|it| !matches!(it.as_str(), "pull" | "resolve" | "push"));
    if let Some(unknown) = unknown {
        return Err(format!("host {url:?}: unknown capability {unknown:?}: use pull and resolve"));
    }
    let has = |name: &str| given.iter().any(|it| it == name);
    Ok(HostAbilities { pull: has("pull"), resolve: has("resolve") })
}

fn client_files(files: ClientFiles) -> Option<(PathBuf, PathBuf)> {
    match files {
        ClientFiles::One(path) => Some((path.clone(), path)),
        ClientFiles::Files(paths) => paths.into_iter().next().map(|path| (path.clone(), path)),
        ClientFiles::Pairs(pairs) => pairs.into_iter().next(),
    }
}

fn headers(
    url: &str,
    fields: toml::map::Map<String, Value>,
) -> Result<Vec<(String, String)>, String> {
    let wrong = |name: &str| format!("host {url:?}: header {name:?} is no text");
    let mut headers = Vec::new();
    for (name, value) in fields {
        match value {
            Value::String(text) => headers.push((name, text)),
            Value::Array(texts) => {
                for text in texts {
                    let text = text.as_str().ok_or_else(|| wrong(&name))?.to_owned();
                    headers.push((name.clone(), text));
                }
            }
            _ => return Err(wrong(&name)),
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_forms() {
        let text = r#"
            server = "https://s"
            capabilities = ["pull"]
            [host."https://one"]
              ca = ["/a", "/b"]
              client = [["/c", "/k"]]
              skip_verify = true
              dial_timeout = "1s"
              [host."https://one".header]
                x = ["1", "2"]
                y = "3"
            [host."https://another"]
              capabilities = ["resolve", "push"]
              client = "/both.pem"
        "#;
        let file = parse(text).unwrap();
        let server = file.server.unwrap();
        assert_eq!((server.url.as_str(), server.abilities.resolve), ("https://s", false));
        let [one, another] = file.hosts.as_slice() else { panic!("{:?}", file.hosts) };
        assert_eq!(one.authorities, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(one.client, Some(("/c".into(), "/k".into())));
        let headers: Vec<(&str, &str)> =
            one.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers, [("x", "1"), ("x", "2"), ("y", "3")]);
        assert_eq!(another.abilities, HostAbilities { pull: false, resolve: true });
        assert_eq!(another.client, Some(("/both.pem".into(), "/both.pem".into())));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_host() {
        let rows = [
            ("[host.\"https://a\"]\ncapabilities = [\"fly\"]", "unknown capability \"fly\""),
            ("[host.\"https://a\"]\nskip_verify = 1", "https://a"),
            ("[host.\"https://a\".header]\nx = 1", "header \"x\" is no text"),
            ("server = ", "server"),
        ];
        for (text, wanted) in rows {
            let wrong = parse(text).unwrap_err();
            assert!(wrong.contains(wanted), "{text}: {wrong}");
        }
    }
}
